// Package validation checks the inputs of operations by the constraints in AWS's models (what is required, lengths, ranges,
// patterns, enums) and refuses them in AWS's words. The tables are made by wire's generator, beside each service. wire checks what came over
// HTTP before a service sees it; callers inside the process may ask for the same with Check.
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

// Service is the constraints on one service's inputs.
type Service struct {
	code  string // of the error that carries what is wrong
	table string
	only  []string // the operations that are checked; nil for all

	once     sync.Once
	shapes   map[string]*shape
	checkers sync.Map // of *checker, by the reflect.Type of inputs
	building sync.Mutex
	built    map[target]*checker
}

// New returns what checks a service's inputs; nil where nothing constrains them.
func New(c model.Constraints) *Service {
	if c.Table == "" {
		return nil
	}
	return &Service{code: c.Code, table: c.Table, only: c.Only}
}

// Error is what is wrong with an input.
type Error struct {
	Code       string
	Violations []string // each names a member and its constraint
}

// ErrorMessage is AWS's.
func (e *Error) ErrorMessage() string {
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

// Check checks an operation's input, a pointer to a struct of the SDK's. What is wrong comes back as an *Error. A service
// that is nil takes everything.
func (s *Service) Check(in any) error {
	if s == nil {
		return nil
	}
	v := reflect.ValueOf(in).Elem()
	c := s.checkerOf(v.Type())
	if c == nil {
		return nil
	}
	w := checking{path: make([]step, 0, 8)}
	w.structure(c, v)
	if len(w.violations) == 0 {
		return nil
	}
	return &Error{Code: s.code, Violations: w.violations}
}

// Checked is a method of a service that checks its input first, as it does for those who call over HTTP.
func Checked[In, Out any](s *Service, method func(context.Context, *In) (*Out, error)) func(context.Context, *In) (*Out, error) {
	return func(ctx context.Context, in *In) (*Out, error) {
		if err := s.Check(in); err != nil {
			return nil, err
		}
		return method(ctx, in)
	}
}

// Operations are the inputs that the table knows, by the names of their structs.
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
			panic("validation: " + err.Error()) // the generator made it, and a test reads it
		}
		s.shapes = shapes
	})
	return s.shapes
}

// checkerOf returns what checks an input; nil where nothing of it is constrained.
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
