// Package cfninit reads the metadata AWS::CloudFormation::Init of a stack's resource: what cfn-init is to do on an instance. It is pure.
// See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-init.html
package cfninit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Config is one of the configs.
type Config struct {
	Packages map[string]map[string]Versions `json:"packages"` // by manager and name
	Groups   map[string]Group               `json:"groups"`
	Users    map[string]User                `json:"users"`
	Sources  map[string]string              `json:"sources"`
	Files    map[string]File                `json:"files"` // by path
	Commands map[string]Command             `json:"commands"`
	Services map[string]map[string]Service  `json:"services"` // by manager and name
}

// File is a file's content, who has it, and what may be done with it.
type File struct {
	Content  any    `json:"content"` // text, or an object, which is written as JSON
	Source   string `json:"source"`
	Encoding string `json:"encoding"` // plain, or base64
	Mode     string `json:"mode"`     // six octal digits; 120xxx is a symbolic link to the content
	Owner    string `json:"owner"`
	Group    string `json:"group"`
	Context  any    `json:"context"`
}

// Command is a command, and when it's run.
type Command struct {
	Command      any            `json:"command"` // a line for the shell, or a program with its arguments
	Env          map[string]any `json:"env"`
	Cwd          string         `json:"cwd"`
	Test         any            `json:"test"` // the command is run only if this one succeeds
	IgnoreErrors Truth          `json:"ignoreErrors"`
}

// Group is a group of users.
type Group struct {
	GID Text `json:"gid"`
}

// User is a user who can't log in.
type User struct {
	UID     Text   `json:"uid"`
	Groups  []Text `json:"groups"`
	HomeDir string `json:"homeDir"`
}

// Service is what is to be so of a service.
type Service struct {
	EnsureRunning *Truth   `json:"ensureRunning"`
	Enabled       *Truth   `json:"enabled"`
	Files         []string `json:"files"` // the service is restarted if one of these has changed
}

// Text is a string or a number, which templates take for each other.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = Text(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%s is neither text nor a number", b)
	}
	*t = Text(n)
	return nil
}

// Truth is a boolean, which a template may give as text.
type Truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *Truth) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true", `"true"`, `"True"`:
		*t = true
	case "false", `"false"`, `"False"`, "null":
		*t = false
	default:
		return fmt.Errorf("%s is neither true nor false", b)
	}
	return nil
}

// Versions are those of a package, or the one version. None stands for the newest.
type Versions []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Versions) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*v = Versions{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(b, &all)
	*v = all
	return err
}

// ErrNone means that a resource has no such metadata.
var ErrNone = errors.New("the resource has no metadata AWS::CloudFormation::Init")

// All returns every config of a resource's metadata, by name, with those that nobody could read left out.
func All(metadata string) map[string]Config {
	raw, err := parse(metadata)
	if err != nil {
		return nil
	}
	out := map[string]Config{}
	for name, r := range raw {
		var c Config
		if name != configSets && json.Unmarshal(r, &c) == nil {
			out[name] = c
		}
	}
	return out
}

const configSets = "configSets"

func parse(metadata string) (map[string]json.RawMessage, error) {
	var m struct {
		Init map[string]json.RawMessage `json:"AWS::CloudFormation::Init"`
	}
	if metadata == "" {
		return nil, ErrNone
	}
	if err := json.Unmarshal([]byte(metadata), &m); err != nil {
		return nil, err
	}
	if m.Init == nil {
		return nil, ErrNone
	}
	return m.Init, nil
}

// Named is a config with its name.
type Named struct {
	Name string
	Config
}

// Select returns the configs of config sets, in the order in which they are done. Without a set it is the one named default, and in metadata
// without sets the config named config.
func Select(metadata string, sets []string) ([]Named, error) {
	s := selection{}
	var err error
	if s.raw, err = parse(metadata); err != nil {
		return nil, err
	}
	if raw, ok := s.raw[configSets]; ok {
		if err := json.Unmarshal(raw, &s.sets); err != nil {
			return nil, fmt.Errorf("configSets: %w", err)
		}
	}
	if len(sets) == 0 && s.sets == nil {
		return s.chosen, s.add("config")
	}
	if len(sets) == 0 {
		sets = []string{"default"}
	}
	for _, name := range sets {
		if err := s.addSet(name, nil); err != nil {
			return nil, err
		}
	}
	return s.chosen, nil
}

// selection chooses configs.
type selection struct {
	raw    map[string]json.RawMessage
	sets   map[string]json.RawMessage
	chosen []Named
}

// addSet adds a set's configs, and those of the sets that it names. within are the sets that it's named by.
func (s *selection) addSet(name string, within []string) error {
	raw, ok := s.sets[name]
	if !ok {
		return fmt.Errorf("there is no config set %s", name)
	}
	if slices.Contains(within, name) {
		return fmt.Errorf("the config set %s contains itself", name)
	}
	var members []json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		members = []json.RawMessage{raw} // a single one needs no list
	}
	for _, m := range members {
		var config string
		var set struct{ ConfigSet string }
		switch {
		case json.Unmarshal(m, &config) == nil:
			if err := s.add(config); err != nil {
				return err
			}
		case json.Unmarshal(m, &set) == nil && set.ConfigSet != "":
			if err := s.addSet(set.ConfigSet, append(within, name)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the config set %s has %s, which is neither a config's name nor a ConfigSet", name, m)
		}
	}
	return nil
}

// add adds a config.
func (s *selection) add(name string) error {
	raw, ok := s.raw[name]
	if !ok {
		return fmt.Errorf("there is no config %s", name)
	}
	c := Named{Name: name}
	if err := json.Unmarshal(raw, &c.Config); err != nil {
		return fmt.Errorf("the config %s: %w", name, err)
	}
	s.chosen = append(s.chosen, c)
	return nil
}
