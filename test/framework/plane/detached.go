package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
)

// state is the information about a plane that a later process needs. Its file is the first in the
// folder, and shows that the folder belongs to a plane.
type state struct {
	Port  int    `json:"port"`
	Tools string `json:"tools"`
	// Node is the folder of a real node's programs. It is empty for a simulated node.
	Node string `json:"node,omitempty"`
}

const stateFile = "plane.json"

// stopTimeout bounds the time until killed processes have disappeared.
const stopTimeout = 20 * time.Second

func (p *Plane) save() error {
	content, err := json.Marshal(state{Port: p.port, Tools: p.tools, Node: p.options.Node})
	if err != nil {
		return fmt.Errorf("encoding the state of the control plane: %w", err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, stateFile), content, 0o600); err != nil {
		return fmt.Errorf("writing the state of the control plane: %w", err)
	}
	return nil
}

// Up ensures that a plane with workloads runs in opts.Dir, also after the caller ends. It does not
// change a healthy plane. It removes the processes and data of a broken plane first. Down stops the
// plane.
func Up(ctx context.Context, opts Options) (*Plane, error) {
	unlock, err := lock(opts.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()

	dir, err := canonical(opts.Dir)
	if err != nil {
		return nil, err
	}
	running, err := attach(ctx, dir)
	if err == nil && running.tools == opts.Tools && running.options.Node == opts.Node {
		opts.say("already running")
		return running, nil
	}
	if err == nil {
		return nil, fmt.Errorf("a control plane of %s runs in %s, asked for %s: end it first", Options{Tools: running.tools, Node: running.options.Node}.programs(), dir, opts.programs())
	}
	if !errors.Is(err, errNone) {
		opts.say("removing the remains of an earlier control plane: %v", err)
	}
	if err := remove(ctx, dir); err != nil {
		return nil, err
	}
	opts.Workloads, opts.Detached = true, true
	if opts.Node == "" {
		return Start(ctx, opts)
	}
	opts.Dir = dir
	if err := hold(ctx, opts); err != nil {
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx), dir))
	}
	return attach(ctx, dir)
}

// Open returns the healthy plane that Up started in dir.
func Open(ctx context.Context, dir string) (*Plane, error) {
	dir, err := canonical(dir)
	if err != nil {
		return nil, err
	}
	return attach(ctx, dir)
}

// Down kills every process of the plane in dir, no matter which process started it, and removes the
// folder. A missing plane is no error.
func Down(ctx context.Context, dir string) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	dir, err = canonical(dir)
	if err != nil {
		return err
	}
	return remove(ctx, dir)
}

// errNone means that a folder is absent or empty.
var errNone = errors.New("there is no control plane")

// attach opens the plane that another process started in dir. It returns an error if the plane is
// incomplete or unhealthy, and errNone if there is no plane.
func attach(ctx context.Context, dir string) (*Plane, error) {
	known, err := load(dir)
	if err != nil {
		return nil, err
	}
	found, err := processesOf(dir)
	if err != nil {
		return nil, err
	}
	for _, program := range programs(known.Node != "") {
		if !slices.ContainsFunc(found, func(f foundProcess) bool { return f.program == program }) {
			return nil, fmt.Errorf("%s does not run", program)
		}
	}
	p := &Plane{dir: dir, tools: known.Tools, kubectl: &kubectls{dir: dir, tools: known.Tools}, port: known.Port,
		options: Options{Node: known.Node}}
	if p.pki, err = loadPKI(filepath.Join(dir, "pki")); err != nil {
		return nil, err
	}
	admin, err := p.openAccess(p.adminFile())
	if err != nil {
		return nil, err
	}
	if err := p.open(admin); err != nil {
		return nil, err
	}
	return p, p.healthy(ctx)
}

// healthy returns nil if the plane works as it did after its start.
func (p *Plane) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := p.ready(ctx); err != nil {
		return fmt.Errorf("kube-apiserver is not ready: %w", err)
	}
	client, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return takesPods(ctx, client)
}

// load reads the state in a folder. It refuses a folder with foreign content, because the caller
// may remove the folder next.
func load(dir string) (state, error) {
	var known state
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			return known, &foreignError{dir: dir}
		}
		return known, errNone
	}
	if err != nil {
		return known, fmt.Errorf("reading the state of the control plane: %w", err)
	}
	if err := json.Unmarshal(content, &known); err != nil {
		return known, fmt.Errorf("parsing %s: %w", filepath.Join(dir, stateFile), err)
	}
	return known, nil
}

// foreignError means that a folder has foreign content and must not be removed.
type foreignError struct{ dir string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("folder %s holds something else than a control plane (no %s): give another folder or empty this one", e.dir, stateFile)
}

// remove kills the processes of the plane in dir and deletes the folder, which may be missing
// already.
func remove(ctx context.Context, dir string) error {
	var foreign *foreignError
	if _, err := load(dir); errors.As(err, &foreign) {
		return foreign
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := killAll(ctx, dir); err != nil {
		return err
	}
	if err := removeCgroups(CgroupOf(dir)); err != nil {
		return fmt.Errorf("removing the cgroups of the node: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the folder of the control plane: %w", err)
	}
	return nil
}

// programs describes the programs of a plane in messages.
func (o Options) programs() string {
	if o.Node == "" {
		return o.Tools + " with a simulated node"
	}
	return o.Tools + " with the real node of " + o.Node
}
