package expression

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"

	"github.com/penstock-project/penstock/test/framework/hostile"
)

// TestEnvironments: expressions are checked and evaluated with the same functions, and each
// function has a cost.
func TestEnvironments(t *testing.T) {
	set, err := typing("self")
	if err != nil {
		t.Fatal(err)
	}
	env, err := evaluation(false, "self")
	if err != nil {
		t.Fatal(err)
	}
	prices := pricers()
	for _, name := range free() {
		if prices[name] != nil {
			t.Errorf("%s has a price and is free", name)
		}
		prices[name] = nil
	}
	for _, checked := range []*cel.Env{set.StoredExpressionsEnv(), set.NewExpressionsEnv()} {
		for name, function := range checked.Functions() {
			_, priced := prices[name]
			if _, pattern := patternAt(name); !priced && !pattern {
				t.Errorf("%s has no price", name)
			}
			for _, overload := range function.OverloadDecls() {
				if there := env.Functions()[name]; there == nil || !slices.ContainsFunc(there.OverloadDecls(), func(o *decls.OverloadDecl) bool { return o.ID() == overload.ID() }) {
					t.Errorf("%s of %s is not there when expressions are evaluated", overload.ID(), name)
				}
			}
		}
	}
	for name := range prices {
		if env.Functions()[name] == nil && name != "format.named" {
			t.Errorf("%s has a price, and there is no such function", name)
		}
	}
}

// TestSameAsLibrary: an expression has the same result with and without a budget.
func TestSameAsLibrary(t *testing.T) {
	set, err := typing("self")
	if err != nil {
		t.Fatal(err)
	}
	self := hostile.Object()
	compiler := &Compiler{}
	for _, text := range []string{
		"self.spec.replicas == self.status.ready", "self.spec.replicas != 4", "self.spec.replicas < 3.5", "dyn(self.spec.ratio) > 1", "!self.spec.on || self.kind == 'Widget'",
		"self.missing == 1", "has(self.missing)", "has(self.spec.on) && self.spec.on", "self.missing == 1 || true", "self.missing == 1 && false", "self.?missing.orValue(1) == 1",
		"self.?spec.?replicas.optMap(x, x + 1).orValue(0) == 4", "optional.of([]).optMap(x, x + [1]).value() == [1]", "self[?'kind'].hasValue()", "self['ki' + 'nd'] == 'Widget'", "self.list[self.spec.replicas] == 3",
		"self.list[100000] == 1", "self.spec.ports.all(p, p.port > 0)", "self.spec.ports.exists(p, p.name == 'http')", "self.status.conditions.exists_one(c, c.type == 'Ready')",
		"self.status.conditions.filter(c, c.type == 'Ready' && c.status == 'True').size() == 1", "self.list.map(x, x * 2)[2] == 4", "self.list.map(x, x > 4998, x)[0] == 4999",
		"self.metadata.labels.all(k, v, v == 'b')", "self.metadata.labels.exists(k, k == 'a')", "self.metadata.labels.transformMap(k, v, v + 'c') == {'a': 'bc'}", "self.metadata.labels.transformList(k, v, k + v) == ['ab']",
		"[3, 1, 2].sort() == [1, 2, 3]", "self.texts.sortBy(x, -int(x.substring(1)))[0] == 'x4999'", "[1, 1, 2].distinct() == [1, 2]", "[[1], [2, [3]]].flatten() == [1, 2, [3]]", "lists.range(3) == [0, 1, 2]", "[1, 2, 3].slice(1, 2) == [2]",
		"[1, 2] + [3] == [1, 2, 3]", "([1] + [2]).map(x, x + 1) + [] == [2, 3]", "self.list + self.list != []", "(self.list + [1]).size() == 5001", "[] + [] == []", "1 + 2 == 3", "'a' + 'b' == 'ab'", "b'a' + b'b' == b'ab'", "'a' + 1 == 'a1' || true", "dyn('a') + 1 == 'a1'",
		"2 in [1, 2]", "'a' in self.metadata.labels", "'x' in self.texts", "self.spec in [self.spec]", "sets.contains([1, 2], [2])", "sets.equivalent([1], [1, 1])", "sets.intersects([1], [2])",
		"'a,b'.split(',') == ['a', 'b']", "'a,b,c'.split(',', 2) == ['a', 'b,c']", "['a', 'b'].join('-') == 'a-b'", "'aba'.replace('a', 'c') == 'cbc'", "'aba'.replace('a', 'c', 1) == 'cba'", "'abc'.indexOf('c') == 2", "'abcabc'.lastIndexOf('a', 2) == 0", "[1, 2].indexOf(2) == 1",
		"'%s is %d'.format(['x', 1]) == 'x is 1'", "'%.2f'.format([1.0]) == '1.00'", "'abc'.charAt(1) == 'b'", "'abc'.substring(1, 2) == 'b'", "' a '.trim() == 'a'", "'aB'.lowerAscii() + 'aB'.upperAscii() == 'abAB'", "strings.quote('a') == '\"a\"'", "size('äb') == 2", "'ä'.size() == 1",
		"'abc'.matches('^a.c$')", "matches('abc', 'b')", "'abc'.matches('[')", "'abc'.matches(self.kind)", "'a1b2'.find('[0-9]') == '1'", "'a1b2'.findAll('[0-9]') == ['1', '2']", "'a1b2'.findAll('[0-9]', 1) == ['1']", "'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c')", "self.spec.replicas.matches('a')",
		"quantity('1Gi').isGreaterThan(quantity('1Mi'))", "quantity('1').add(quantity('2')).compareTo(quantity('3')) == 0", "isQuantity('x')", "quantity('1k').asInteger() == 1000", "semver('1.2.3').major() == 1", "semver('1.2.3').isLessThan(semver('1.10.0'))", "semver('v1.2', true).minor() == 2",
		"ip('10.0.0.1').family() == 4", "cidr('10.0.0.0/8').containsIP('10.1.1.1')", "cidr('10.0.0.0/8').ip() == ip('10.0.0.0')", "isIP('x')", "url('https://a:1/b?c=d').getPort() == '1'", "isURL('::')", "format.dns1123Label().validate('A-').hasValue()", "format.named('uuid').value().validate('x').hasValue()",
		"duration('1h') == duration('60m')", "timestamp('2020-01-02T00:00:00Z').getDayOfMonth() == 1", "timestamp('2020-01-02T00:00:00Z').getHours('America/New_York') == 19", "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')",
		"int('12') == 12", "int('x') == 12", "string(1.5) == '1.5'", "double('1.5') == self.spec.ratio", "bool('true')", "uint(1) == 1u", "type(self.spec) == map", "type(1) == int", "bytes('a') == b'a'", "string(b'a') == 'a'",
		"self == self", "self.spec == {'replicas': 3}", "{'a': 1, 'b': 2}.size() == 2", "{self.kind: 1}['Widget'] == 1", "{'a': 1}.b == 1", "self.data.big == self.data.same", "self.data.big.size() == 1000000", "1 / 0 == 1", "9223372036854775807 + 1 == 0", "self.list.min() == 0 && self.list.max() == 4999", "self.list.sum() == 12497500", "[1, 2].isSorted()", "[1, 2].reverse() == [2, 1]",
		"[1, 2].first().value() == 1", "[].last().hasValue()", "[optional.of(1), optional.none()].unwrapOpt() == [1]", "optional.ofNonZeroValue('').or(optional.of('x')).value() == 'x'", "true ? self.spec.on == true : self.missing == 1", "self.spec.ports[0].port == 80", "[[0]].map(x, x + x).map(x, x + x).size() == 1",
	} {
		ours, err := compiler.Compile(text)
		checked, issues := set.StoredExpressionsEnv().Compile(text)
		if issues.Err() != nil {
			if err == nil {
				t.Errorf("%s: compiles, and the library says %v", text, issues.Err())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		program, err := set.StoredExpressionsEnv().Program(checked, cel.CostLimit(1<<60))
		if err != nil {
			continue // A pattern that does not compile: here it is found at compile time.
		}
		var want any
		out, _, wantErr := program.Eval(map[string]any{"self": self})
		if wantErr == nil {
			want = out.Value()
		}
		got, gotErr := ours.Eval(t.Context(), self, NewCostBudget(1<<50))
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && got != want {
			t.Errorf("%s: %v, %v; the library says %v, %v", text, got, gotErr, want, wantErr)
		}
	}
}

// TestBombs: any expression ends when its budget is spent, and its memory is within the charged
// cost.
func TestBombs(t *testing.T) {
	const units = 100_000
	self := hostile.Object()
	compiler := &Compiler{}
	for _, name := range hostile.Names(hostile.Expressions()) {
		t.Run(name, func(t *testing.T) {
			program, err := compiler.Compile(hostile.Expressions()[name])
			if err != nil {
				t.Fatal(err)
			}
			budget := NewCostBudget(units)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			holds, err := program.Eval(t.Context(), self, budget)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrCost) || holds || !budget.Exhausted() || budget.Spent() != units || budget.Left() != 0 {
				t.Errorf("%v, %v after %d units", holds, err, budget.Spent())
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
				t.Errorf("it took %d bytes", used)
			}
			if holds, err := program.Eval(t.Context(), self, budget); holds || !errors.Is(err, ErrCost) {
				t.Errorf("a budget with nothing left lets it begin: %v, %v", holds, err)
			}
		})
	}
}

// TestOrdinary: ordinary expressions cost a small part of the budget.
func TestOrdinary(t *testing.T) {
	self := hostile.Object()
	compiler := &Compiler{Checking: true}
	for text, most := range map[string]uint64{
		"self.spec.replicas == self.status.ready": 60,
		"has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')": 110,
		"self.kind.matches('^[A-Z][a-z]+$') && self.metadata.name in ['w', 'x']":                                   90,
		"quantity('1Gi').isGreaterThan(quantity('1Mi'))":                                                           320,
	} {
		program, err := compiler.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		budget := NewCostBudget(1 << 20)
		if holds, err := program.Eval(t.Context(), self, budget); !holds || err != nil || budget.Spent() > most {
			t.Errorf("%s: %v, %v, %d units, want %d at most", text, holds, err, budget.Spent(), most)
		}
	}
}

func TestEnded(t *testing.T) {
	program, err := (&Compiler{}).Compile(hostile.Loop("true", 7))
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	budget := NewCostBudget(1 << 40)
	if _, err := program.Eval(ended, nil, budget); !errors.Is(err, context.Canceled) || budget.Spent() != 0 {
		t.Errorf("%v after %d units", err, budget.Spent())
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := program.Eval(soon, nil, budget); !errors.Is(err, context.DeadlineExceeded) || budget.Slow() {
		t.Errorf("%v after %d units, slow: %v", err, budget.Spent(), budget.Slow())
	}
}

// TestChecking: the new expressions that are refused, with their errors.
func TestChecking(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, says string }{
		"Constant":  {"a pattern in quotes", "self.kind.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')", ""},
		"Computed":  {"nobody knows what it is", "self.kind.matches('a' + self.kind)", "the pattern of matches must be a text in quotes"},
		"Function":  {"as a function", "matches(self.kind, self.kind)", "must be a text in quotes"},
		"Find":      {"others have patterns too", "self.kind.find(self.kind) == ''", "the pattern of find must be"},
		"FindAll":   {"in a loop", "self.list.all(x, x.findAll(string(x), 1) == [])", "the pattern of findAll must be"},
		"Repeated":  {"13 characters are a thousand steps", "self.kind.matches('(abcdef){900}')", "takes about 8101 steps, must have at most 1000"},
		"Nested":    {"that is not compiled first", "self.kind.matches('((a{30}){30}){1}')", "must have at most 1000"},
		"Wrong":     {"and none that is none", "self.kind.matches('[')", "missing closing ]"},
		"Loops":     {"checking types takes time by the square of loops", strings.Repeat("self.list.all(x,true)&&", 17) + "true", "has 17 loops"},
		"MostLoops": {"16 are enough", strings.Repeat("self.list.all(x,true)&&", 16) + "true", ""},
		"Mistakes":  {"a few mistakes are told", strings.Repeat("a||", 1000) + "a", "undeclared reference"},
	} {
		_, err := (&Compiler{Checking: true}).Compile(tc.text)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %s: %v, want %q", name, tc.reason, err, tc.says)
		}
		if err != nil && len(err.Error()) > 4<<10 {
			t.Errorf("%s: %d bytes say what is wrong", name, len(err.Error()))
		}
	}
	if _, err := (&Compiler{}).Compile("self.kind.matches('a' + self.kind)"); err != nil {
		t.Errorf("what was stored before is refused: %v", err)
	}
}

// TestWeigh: values are charged with their contents until the budget is spent.
func TestWeigh(t *testing.T) {
	budget := NewCostBudget(1000)
	if !budget.Weigh([]any{"a", map[string]any{"b": strings.Repeat("x", 100)}}) || budget.Spent() != 15 {
		t.Errorf("%d units", budget.Spent())
	}
	if budget.Weigh(strings.Repeat("x", 20_000)) || !budget.Exhausted() || budget.Left() != 0 {
		t.Errorf("%d units for what is more than there is", budget.Spent())
	}
}
