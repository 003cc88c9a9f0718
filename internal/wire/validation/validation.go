// Package validation checks the inputs of operations by the constraints in AWS's models (required members, lengths, ranges, patterns,
// enums) and refuses bad ones with AWS's messages. Wire's generator makes the tables, in each service's folder. Wire checks what came
// over HTTP before a service sees it. Callers inside the process can do the same with Check.
package validation

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/model"
)

// Service has the constraints on one service's inputs.
type Service struct {
	code  string // of the error for a bad input
	table string
	only  []string // the operations to check; nil for all

	tooLong map[string]string // messages in place of the common one, by shape
	worded  func(place, constraint string) string

	once     sync.Once
	shapes   map[string]*shape
	checkers sync.Map // of *checker, by the input's reflect.Type
	building sync.Mutex
	built    map[target]*checker
}

// New returns a Service that checks inputs by c, or nil if c has no constraints.
func New(c model.Constraints) *Service {
	if c.Table == "" {
		return nil
	}
	return &Service{code: c.Code, table: c.Table, only: c.Only, tooLong: c.TooLong, worded: c.Worded}
}

// Error says what is wrong with an input.
type Error struct {
	Code       string
	Violations []string // each names a member and its constraint
	Message    string   // in place of the violations, if not empty
}

// ErrorMessage returns AWS's message.
func (e *Error) ErrorMessage() string {
	if e.Message != "" {
		return e.Message
	}
	s := ""
	if len(e.Violations) != 1 {
		s = "s"
	}
	return fmt.Sprintf("%d validation error%s detected: %s", len(e.Violations), s, strings.Join(e.Violations, "; "))
}

func (e *Error) Error() string                 { return e.Code + ": " + e.ErrorMessage() }
func (e *Error) ErrorCode() string             { return e.Code }
func (e *Error) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }
func (e *Error) HTTPStatusCode() int           { return http.StatusBadRequest }

// Check checks an operation's input, which is a pointer to an SDK struct. It returns an *Error for a bad input. A nil service accepts
// everything.
func (s *Service) Check(in any) error {
	if s == nil {
		return nil
	}
	v := reflect.ValueOf(in).Elem()
	c := s.checkerOf(v.Type())
	if c == nil {
		return nil
	}
	w := checking{path: make([]step, 0, 8), worded: s.worded}
	w.structure(c, v)
	if len(w.violations) == 0 {
		return nil
	}
	return &Error{Code: s.code, Violations: w.violations, Message: w.message}
}

// Checked wraps a service's method so that it checks its input first, as wire does for calls over HTTP.
func Checked[In, Out any](s *Service, method func(context.Context, *In) (*Out, error)) func(context.Context, *In) (*Out, error) {
	return func(ctx context.Context, in *In) (*Out, error) {
		if err := s.Check(in); err != nil {
			return nil, err
		}
		return method(ctx, in)
	}
}

// Operations returns the names of the input structs that are in the table.
func (s *Service) Operations() (inputs []string) {
	for name := range s.load() {
		if strings.HasSuffix(name, inputSuffix) {
			inputs = append(inputs, name)
		}
	}
	slices.Sort(inputs)
	return inputs
}

const inputSuffix = "Input"

func (s *Service) load() map[string]*shape {
	s.once.Do(func() {
		shapes, err := parse(s.table)
		if err != nil {
			panic("validation: " + err.Error()) // the generator wrote the table, and a test parses it
		}
		for name, message := range s.tooLong {
			shapes[name].tooLong = message
		}
		s.shapes = shapes
	})
	return s.shapes
}

// checkerOf returns the checker of an input, or nil if nothing in the input is constrained.
func (s *Service) checkerOf(t reflect.Type) *checker {
	if c, ok := s.checkers.Load(t); ok {
		return c.(*checker)
	}
	var c *checker
	operation := strings.TrimSuffix(t.Name(), inputSuffix)
	if s.only == nil || slices.Contains(s.only, operation) {
		s.building.Lock()
		c = s.build(t.Name(), t)
		s.building.Unlock()
	}
	s.checkers.Store(t, c)
	return c
}
