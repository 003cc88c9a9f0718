package main

import (
	"fmt"

	"github.com/pintle/pintle/internal/plane"
)

type coverageCmd struct{}

// Run prints docs/coverage.md.
func (coverageCmd) Run() error {
	text, err := plane.Coverage()
	if err != nil {
		return err
	}
	fmt.Print(text)
	return nil
}
