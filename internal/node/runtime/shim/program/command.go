package program

import (
	"errors"
	"strings"
)

// Command is what a shim runs. The container's directory has it in the form of Encode.
type Command struct {
	Args []string
	Env  []string // complete: a shim adds nothing
	Dir  string

	OpenStdin bool // reading standard input blocks, instead of returning the end of file

	// PIDFile is set if Args doesn't become the container, but creates it, ready to start, and leaves its process to the shim. Args writes
	// that process's ID to the file. Then starts the container.
	PIDFile string
	Then    []string
	// Console names the socket in Dir over which Args hands over the container's terminal, if it has one.
	Console string
	// Undo removes what an interrupted attempt left.
	Undo []string

	Again bool // there was an earlier attempt
}

// Encode encodes a command as fields NAME=VALUE, each followed by a NUL, like /proc/PID/environ.
func (c *Command) Encode() ([]byte, error) {
	var b []byte
	add := func(name string, values ...string) {
		for _, v := range values {
			b = append(b, name...)
			b = append(b, '=')
			b = append(b, v...)
			b = append(b, 0)
		}
	}
	for _, v := range c.strings() {
		if strings.IndexByte(v, 0) >= 0 {
			return nil, errors.New("a command cannot have NUL bytes")
		}
	}
	add("arg", c.Args...)
	add("env", c.Env...)
	add("dir", c.Dir)
	add("pidfile", c.PIDFile)
	if c.Console != "" {
		add("console", c.Console)
	}
	add("then", c.Then...)
	add("undo", c.Undo...)
	if c.OpenStdin {
		add("stdin", "open")
	}
	if c.Again {
		add("again", "")
	}
	return b, nil
}

// strings lists all strings in a command.
func (c *Command) strings() []string {
	all := []string{c.Dir, c.PIDFile, c.Console}
	for _, list := range [][]string{c.Args, c.Env, c.Then, c.Undo} {
		all = append(all, list...)
	}
	return all
}

// parse decodes the output of Encode.
func parse(b []byte) (*Command, error) {
	c := new(Command)
	for rest := string(b); rest != ""; {
		field, after, whole := strings.Cut(rest, "\x00")
		name, value, named := strings.Cut(field, "=")
		if !whole || !named {
			return nil, errors.New("the container's command is cut off")
		}
		rest = after
		if !c.set(name, value) {
			return nil, errors.New("the container's command has a " + name + ", which this version of the shim does not know")
		}
	}
	if len(c.Args) == 0 {
		return nil, errors.New("the container's command is empty")
	}
	return c, nil
}

// set sets a field, or appends to it. It reports whether the field is known.
func (c *Command) set(name, value string) bool {
	switch name {
	case "arg":
		c.Args = append(c.Args, value)
	case "env":
		c.Env = append(c.Env, value)
	case "dir":
		c.Dir = value
	case "pidfile":
		c.PIDFile = value
	case "console":
		c.Console = value
	case "then":
		c.Then = append(c.Then, value)
	case "undo":
		c.Undo = append(c.Undo, value)
	case "stdin":
		c.OpenStdin = true
	case "again":
		c.Again = true
	default:
		return false
	}
	return true
}
