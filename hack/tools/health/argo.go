package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// argo evaluates a script as Argo CD does: with the libraries package, base and table alone,
// and for a second at most.
func argo(script string, object map[string]any) (health, message string, err error) {
	if script == "" {
		return "", "", errors.New("there is no script for this kind")
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", valueOf(state, object))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the script returns no table: %s", state.Get(-1))
	}
	return lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message")), nil
}

// valueOf is JSON as the script sees it.
func valueOf(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.NewTable()
		for _, one := range value {
			table.Append(valueOf(state, one))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, one := range value {
			table.RawSetString(name, valueOf(state, one))
		}
		return table
	}
	return lua.LString(fmt.Sprint(value))
}
