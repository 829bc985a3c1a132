package plane

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// readyLine is the last line that a holder prints, when its plane is ready.
const readyLine = "ready"

// CgroupOf returns the name of the cgroups of the detached plane in dir, which must be a path
// without symbolic links.
func CgroupOf(dir string) string {
	digest := sha256.Sum256([]byte(dir))
	return cgroupPrefix + "d" + hex.EncodeToString(digest[:5])
}

// hold starts a process in new namespaces. That process starts a plane with a real node and lives
// as long as the plane. hold returns when the plane is ready. The process inherits a listening port
// of this machine, and forwards its connections to kube-apiserver in the namespaces.
func hold(ctx context.Context, opts Options) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	defer listener.Close()
	port, err := listener.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("passing the port on: %w", err)
	}
	defer port.Close()
	said, says, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer said.Close()
	// The arguments of a plane's processes contain a path below its folder.
	cmd := exec.Command("/proc/self/exe", opts.Dir+"/", opts.Tools, opts.Node)
	cmd.Args[0] = holder
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = "/", says, []*os.File{port}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if _, err := isolate(cmd, CgroupOf(opts.Dir)); err != nil {
		says.Close()
		return err
	}
	err = cmd.Start()
	says.Close()
	if err != nil {
		return fmt.Errorf("starting the process that holds the node: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	lines := bufio.NewScanner(said)
	var last []string
	for lines.Scan() {
		if lines.Text() == readyLine {
			return cmd.Process.Release()
		}
		if progress, ok := strings.CutPrefix(lines.Text(), "+ "); ok {
			opts.say("%s", progress)
		} else {
			last = append(last, lines.Text())
		}
	}
	_ = cmd.Wait()
	return errors.Join(ctx.Err(), fmt.Errorf("the node did not start: %s", strings.Join(last, "\n")))
}

// Hold is the main function of the process that holds a detached plane with a real node. In any
// other process it does nothing. Programs that call Up call it first.
func Hold() {
	if os.Args[0] != holder || os.Getenv(isolated) == "" {
		return
	}
	if err := holdNode(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, readyLine)
	select {}
}

func holdNode() error {
	if err := settle(); err != nil {
		return err
	}
	file := os.NewFile(3, "port")
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("taking the port over: %w", err)
	}
	file.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	running, err := Start(context.Background(), Options{
		Dir: strings.TrimSuffix(os.Args[1], "/"), Tools: os.Args[2], Node: os.Args[3], Workloads: true, Port: port,
		Progress: func(line string) { fmt.Fprintln(os.Stderr, "+ "+line) },
	})
	if err != nil {
		return err
	}
	go relay(listener, fmt.Sprintf("127.0.0.1:%d", running.port))
	return nil
}

// relay forwards connections to an address.
func relay(listener net.Listener, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer to.Close()
			// The end of one direction closes the connection.
			go func() {
				_, _ = io.Copy(to, from)
				to.Close()
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}
