package session

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// prompt asks on a screen and reads the answer from an input.
type prompt struct {
	In     io.Reader
	Screen *screen.Screen
	// Person is true if a user can answer.
	Person bool
}

// errNobody means that no user can answer.
var errNobody = errors.New("there is no terminal to ask on")

// confirm asks a question. Only y and yes agree; the end of the input does not.
func (p *prompt) confirm(ctx context.Context, question string) (bool, error) {
	if !p.Person {
		return false, errNobody
	}
	p.Screen.Printf("%s [y/N] ", p.Screen.Paint(screen.Bold, question))
	type line struct {
		text string
		err  error
	}
	answers := make(chan line, 1)
	// A read cannot be cancelled. When the user interrupts, the process ends.
	go func() {
		text, err := bufio.NewReader(p.In).ReadString('\n')
		answers <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		p.Screen.Printf("\n")
		return false, ctx.Err()
	case answer := <-answers:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return false, answer.err
		}
		if answer.err != nil {
			p.Screen.Printf("\n")
		}
		switch strings.ToLower(strings.TrimSpace(answer.text)) {
		case "y", "yes":
			return true, nil
		default:
			return false, nil
		}
	}
}
