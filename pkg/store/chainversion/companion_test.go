package chainversion

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestBeside: a record and its companion are written together or not at all, even if other clients
// write to them meanwhile.
func TestBeside(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		// meanwhile is the record that another client writes before the first try: "beside",
		// "record" or "chain".
		meanwhile string
		// change returns the new value of the companion record; the default appends "+".
		change func(found string) (string, error)
		// apart is true for a write that is no change of the chain.
		apart   bool
		written bool
		// beside is the companion record afterwards. tries is the number of calls of change.
		beside string
		tries  int
		err    bool
	}{
		"both":                          {written: true, beside: "0+", tries: 1},
		"both, apart":                   {apart: true, written: true, beside: "0+", tries: 1},
		"the one beside it has changed": {meanwhile: "beside", written: true, beside: "1+", tries: 2},
		"that, apart":                   {meanwhile: "beside", apart: true, written: true, beside: "1+", tries: 2},
		"the record has changed":        {meanwhile: "record", beside: "0", tries: 1},
		"that, apart ":                  {meanwhile: "record", apart: true, beside: "0", tries: 1},
		"the chain has changed":         {meanwhile: "chain", beside: "0", tries: 1},
		"the chain, apart":              {meanwhile: "chain", apart: true, written: true, beside: "0+", tries: 1},
		"nothing to write beside it":    {change: func(string) (string, error) { return "", nil }, written: true, beside: "0", tries: 1},
		"refused":                       {change: func(string) (string, error) { return "", refused }, beside: "0", tries: 1, err: true},
		"refused at the second look": {meanwhile: "beside", beside: "1", tries: 2, err: true, change: func(found string) (string, error) {
			if found == "1" {
				return "", refused
			}
			return found + "+", nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := storetest.Client(t)
			client, chainVersions := NewClient(&kubernetes.Client{Client: etcd}, etcd, "/p"), New(etcd, "/p")
			put := func(key, value string) {
				t.Helper()
				if _, err := etcd.Put(t.Context(), key, value); err != nil {
					t.Fatal(err)
				}
			}
			put("/p/e-1", "old")
			put("/beside", "0")
			put(store.NewKeys("/p").ChainVersion("e"), "x")
			at, err := chainVersions.Get(t.Context(), "e")
			if err != nil {
				t.Fatal(err)
			}
			record, err := store.Get(t.Context(), etcd, "/p/e-1")
			if err != nil {
				t.Fatal(err)
			}
			ctx := Referring(t.Context())
			if !tc.apart {
				ctx = With(t.Context())
				From(ctx).Made("e", at)
			}
			tries := 0
			From(ctx).Accompany(&store.CompanionWrite{Key: "/beside", Change: func(found store.Value) ([]byte, error) {
				tries++
				switch {
				case tries > 1:
				case tc.meanwhile == "beside":
					put("/beside", "1")
				case tc.meanwhile == "record":
					put("/p/e-1", "newer")
				case tc.meanwhile == "chain":
					put(store.NewKeys("/p").ChainVersion("e"), "y")
				}
				if tc.change == nil {
					return append(found.Bytes, '+'), nil
				}
				changed, err := tc.change(string(found.Bytes))
				if changed == "" {
					return nil, err
				}
				return []byte(changed), err
			}})
			done, err := client.OptimisticPut(ctx, "/p/e-1", []byte("new"), record.ModRevision, kubernetes.PutOptions{GetOnFailure: true})
			if (err != nil) != tc.err || done.Succeeded != tc.written || tries != tc.tries {
				t.Errorf("written %t after %d tries, error %v; want %t, %d, %t", done.Succeeded, tries, err, tc.written, tc.tries, tc.err)
			}
			if got := valueOf(t.Context(), t, client, "/p/e-1"); (got == "new") != tc.written {
				t.Errorf("the record is %q", got)
			}
			if got := valueOf(t.Context(), t, client, "/beside"); got != tc.beside {
				t.Errorf("the record beside it is %q, want %q", got, tc.beside)
			}
		})
	}
}

func valueOf(ctx context.Context, t *testing.T, client *Client, key string) string {
	t.Helper()
	found, err := store.Get(ctx, client.kv, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(found.Bytes)
}
