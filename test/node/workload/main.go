// Command workload runs in test containers on a real node. By its flags it becomes ready late or
// never, exits, or exceeds its memory limit.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	readyAfter := flag.Duration("ready-after", 0, "time until the readiness probe passes; negative is never")
	exit := flag.Int("exit", -1, "end at once, with this exit code")
	hungry := flag.Bool("hungry", false, "take memory without end")
	flag.Parse()
	switch {
	case *exit >= 0:
		fmt.Println("error: cannot open /etc/workload.yaml")
		os.Exit(*exit)
	case *hungry:
		for taken := [][]byte{}; ; time.Sleep(5 * time.Millisecond) {
			more := make([]byte, 1<<20)
			for i := range more {
				more[i] = 1
			}
			taken = append(taken, more)
		}
	}
	began := time.Now()
	http.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if *readyAfter < 0 || time.Since(began) < *readyAfter {
			http.Error(w, "no database", http.StatusServiceUnavailable)
		}
	})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	os.Exit(1)
}
