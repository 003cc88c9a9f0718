package model

import "context"

// CrossOrigin is a call that a page of another origin makes or is about to make, as its browser describes it.
type CrossOrigin struct {
	Bucket  string
	Key     string // "" if the call is about the bucket
	Origin  string
	Method  string
	Headers []string // those that the browser asks for, in lower case
}

// AllowOrigin returns the headers by which a browser lets the page call and see the answer, or the error that a preflight gets.
type AllowOrigin func(context.Context, CrossOrigin) (map[string]string, error)
