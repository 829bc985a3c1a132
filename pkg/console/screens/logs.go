package screens

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxLine = 8 << 10
	maxTail = 5000
	// batchFor is the time during which lines are collected before they are sent.
	batchFor = 100 * time.Millisecond
	maxBatch = 500
)

// kindLog is a message with lines of a log. The first message of a stream has no lines: it tells
// the page to clear the log.
const kindLog = "log"

// kindEnded is the message after the last line of a log: the container has ended.
const kindEnded = "ended"

// watchLog sends the log of a container, with the rights of the caller: get pods/log.
func (a *API) watchLog(ctx context.Context, r *http.Request, send func(Message)) error {
	namespace := r.PathValue("namespace")
	if refusal := checkName(namespace); refusal != nil {
		return refusal
	}
	asked := r.URL.Query()
	request := a.core().Get().AbsPath("/api/v1/namespaces", namespace, "pods", r.PathValue("name"), "log").
		Param("container", asked.Get("container")).Param("timestamps", "true")
	for name, most := range map[string]int{"tailLines": maxTail, "sinceSeconds": 366 * 24 * 3600} {
		given := asked.Get(name)
		if given == "" {
			continue
		}
		if n, err := strconv.Atoi(given); err != nil || n < 1 || n > most {
			return &Refusal{Status: http.StatusBadRequest, Reason: "Query", Message: fmt.Sprintf("%s is %q, and must be a number from 1 to %d", name, given, most)}
		}
		request.Param(name, given)
	}
	if asked.Get("previous") == "true" {
		request.Param("previous", "true")
	} else {
		request.Param("follow", "true")
	}
	log, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	send(Message{Kind: kindLog})
	if err := sendLines(ctx, log, send); err != nil {
		return err
	}
	send(Message{Kind: kindEnded})
	// If the stream ended, the page would open it again.
	<-ctx.Done()
	return nil
}

func sendLines(ctx context.Context, log io.Reader, send func(Message)) error {
	lines := make(chan string, maxBatch)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		failed <- readLines(log, func(line string) bool {
			select {
			case lines <- line:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	for line := range lines {
		batch := []string{line}
		late := time.After(batchFor)
		for open := true; open && len(batch) < maxBatch; {
			select {
			case line, more := <-lines:
				if open = more; more {
					batch = append(batch, line)
				}
			case <-late:
				open = false
			}
		}
		send(Message{Kind: kindLog, Log: batch})
	}
	return <-failed
}

// readLines calls keep with each line, until keep returns false. It cuts lines that are too long.
func readLines(log io.Reader, keep func(string) bool) error {
	reader := bufio.NewReaderSize(log, maxLine)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 && !keep(printable(string(line))) {
			return nil
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = reader.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var colors = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// printable removes cursor movements, and control characters that turn or hide text. Spaces stay.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) {
			return r
		}
		return -1
	}, colors.ReplaceAllString(line, ""))
}
