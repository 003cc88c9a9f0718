package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flags defines a verb's flags, of pflag's kinds and those below.
type flags struct{ *pflag.FlagSet }

// value is a flag's value of a kind that pflag doesn't have.
type value struct {
	text string // what --help shows as the default
	kind string // what --help shows as the placeholder
	set  func(string) error
}

func (v *value) String() string         { return v.text }
func (v *value) Type() string           { return v.kind }
func (v *value) Set(given string) error { return v.set(given) }

// withPlaceholder is a value with another placeholder.
type withPlaceholder struct {
	pflag.Value
	kind string
}

func (p withPlaceholder) Type() string { return p.kind }

// placeholder sets what --help shows for a flag's value.
func (f flags) placeholder(name, kind string) {
	flag := f.Lookup(name)
	flag.Value = withPlaceholder{flag.Value, kind}
	if flag.DefValue == "0s" { // pflag leaves it out only of its own kinds
		flag.DefValue = ""
	}
}

// required makes a flag mandatory.
func (f flags) required(name string) {
	cobra.MarkFlagRequired(f.FlagSet, name) //nolint:errcheck // the flag exists
}

// hidden leaves a flag out of --help.
func (f flags) hidden(name string) {
	f.MarkHidden(name) //nolint:errcheck // the flag exists
}

// negation defines a flag that turns another off.
func (f flags) negation(of *bool, name, usage string) {
	f.VarPF(&value{"false", "bool", func(s string) error {
		no, err := strconv.ParseBool(s)
		*of = !no
		return err
	}}, name, "", usage).NoOptDefVal = "true"
}

// envAnnotation is the annotation with a flag's environment variable.
const envAnnotation = "environment"

// env lets a flag take its value from an environment variable if it isn't given.
func (f flags) env(name, variable string) {
	flag := f.Lookup(name)
	flag.Usage = fmt.Sprintf("%s ($%s)", flag.Usage, variable)
	flag.Annotations = map[string][]string{envAnnotation: {variable}}
}

// readEnvironment sets flags that weren't given from their environment variables.
func (f flags) readEnvironment() error {
	var err error
	f.VisitAll(func(flag *pflag.Flag) {
		for _, variable := range flag.Annotations[envAnnotation] {
			text, set := os.LookupEnv(variable)
			if set && !flag.Changed {
				err = errors.Join(err, f.Set(flag.Name, text))
			}
		}
	})
	return err
}

// choice defines a flag that takes one of several words.
func (f flags) choice(to *string, name, otherwise, usage string, words ...string) {
	*to = otherwise
	f.Var(&value{otherwise, strings.Join(words, "|"), func(s string) error {
		*to = s
		if s == otherwise {
			return nil
		}
		return oneOf(s, words)
	}}, name, usage)
}

func oneOf(s string, words []string) error {
	if slices.Contains(words, s) {
		return nil
	}
	return fmt.Errorf("it must be %s", strings.Join(words, " or "))
}

// list defines a flag of several values, separated by commas or given several times. With words, it accepts only those.
func (f flags) list(to *[]string, name, kind, otherwise, usage string, words ...string) {
	*to = splitEscaped(otherwise, ',')
	given := false
	f.Var(&value{otherwise, kind, func(s string) error {
		if !given {
			*to = nil
			given = true
		}
		for _, item := range splitEscaped(s, ',') {
			if err := oneOf(item, words); len(words) > 0 && err != nil {
				return err
			}
			*to = append(*to, item)
		}
		return nil
	}}, name, usage)
}

// repeated defines a flag that takes one value each time it's given.
func (f flags) repeated(to *[]string, name, kind, usage string) {
	f.Var(&value{"", kind, func(s string) error {
		*to = append(*to, s)
		return nil
	}}, name, usage)
}

// pairs defines a flag of KEY=VALUE, separated by semicolons or given several times.
func pairs[V any](f flags, to *map[string]V, name, shorthand, kind, usage string, parse func(string) (V, error)) {
	f.VarP(&value{"", kind, func(s string) error {
		for _, pair := range splitEscaped(s, ';') {
			key, text, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("%q is not of the form NAME=VALUE", pair)
			}
			v, err := parse(text)
			if err != nil {
				return err
			}
			if *to == nil {
				*to = map[string]V{}
			}
			(*to)[key] = v
		}
		return nil
	}}, name, shorthand, usage)
}

// asIs returns a text unchanged.
func asIs(s string) (string, error) { return s, nil }

// endpoint defines the flag for a control plane's URL. An empty one stands for AWS itself.
func (f flags) endpoint(to *string) {
	*to = "http://127.0.0.1:4566"
	f.Var(&value{*to, "URL", func(s string) error {
		u, err := url.Parse(s)
		if s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return errors.New("it must be a URL such as http://127.0.0.1:4566")
		}
		*to = s
		return nil
	}}, "endpoint", "The control plane's URL.")
}

// count defines a flag for a number that isn't negative.
func (f flags) count(to *int, name, usage string) {
	f.Var(&value{"0", "int", func(s string) (err error) {
		*to, err = strconv.Atoi(s)
		if err != nil || *to < 0 {
			return errors.New("it must be a whole number of at least 0")
		}
		return nil
	}}, name, usage)
}

// path defines a flag for a path that needn't exist.
func (f flags) path(to *string, name, kind, otherwise, usage string) {
	*to = expand(otherwise)
	f.Var(&value{otherwise, kind, func(s string) error {
		*to = expand(s)
		return nil
	}}, name, usage)
}

// file defines a flag for an existing file.
func (f flags) file(to *string, name, usage string) {
	f.Var(&value{"", "FILE", func(s string) (err error) {
		*to, err = existing(s, false)
		return err
	}}, name, usage)
}

// files defines a flag for existing files, given one at a time.
func (f flags) files(to *[]string, name, usage string) {
	f.Var(&value{"", "FILE", func(s string) error {
		path, err := existing(s, false)
		*to = append(*to, path)
		return err
	}}, name, usage)
}

// directory defines a flag for an existing directory.
func (f flags) directory(to *string, name, usage string) {
	f.Var(&value{"", "DIRECTORY", func(s string) (err error) {
		*to, err = existing(s, true)
		return err
	}}, name, usage)
}

// existing returns the absolute path of something that exists.
func existing(s string, directory bool) (string, error) {
	if s == "-" && !directory {
		return s, nil
	}
	path := expand(s)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case directory && !info.IsDir():
		return "", errors.New("it is no directory")
	case !directory && info.IsDir():
		return "", errors.New("it is a directory")
	}
	return path, nil
}

// expand makes a path absolute; ~/ is the user's home. An empty path stays empty.
func expand(path string) string {
	if path == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home(), rest)
	}
	absolute, err := filepath.Abs(path)
	if err != nil { // the working directory is gone
		return path
	}
	return absolute
}

// home returns $HOME, which services often lack, or else the home in the password file. A user without either has the root directory, as in
// containers. It never depends on the working directory.
func home() string {
	if dir := os.Getenv("HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return "/"
}

// makeData makes a data directory, for its owner alone.
func makeData(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data directory: %w: choose another with --data", err)
	}
	return nil
}

// checkData refuses a control plane's data directory that has other programs' files, such as /tmp: it would be closed to them, or set aside.
func checkData(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the data directory: %w: choose another with --data", err)
	}
	if len(entries) > 0 && !hasAny(entries, slices.Concat(inControlPlane, besides)) {
		return fmt.Errorf("--data %s: it has files, but none of Pintle's; choose a directory that is empty or new, such as %s",
			dir, filepath.Join(dir, "pintle"))
	}
	return nil
}

// checkStores refuses a directory that no control plane has had its data in.
func checkStores(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the data directory: %w: say where it is with --data", err)
	}
	if !hasAny(entries, inControlPlane) {
		return fmt.Errorf("%s has no control plane's data: say where that is with --data", dir)
	}
	return nil
}

func hasAny(entries []os.DirEntry, names []string) bool {
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return slices.Contains(names, e.Name()) })
}

// inControlPlane are what a control plane makes first in its data directory, and what a copy of one has.
var inControlPlane = []string{"pintle.lock", "state.db", "task.key", "secrets.key"}

// besides are what its nodes make there, an agent in its own default directory, and what an empty file system has.
var besides = []string{"machine", "nodes", "agent", "lost+found"}

// bytes defines a flag for a size in bytes, written like 512MiB.
func (f flags) bytes(to *int64, name string, otherwise int64, usage string) {
	*to = otherwise
	text := "" // no default to tell of
	if otherwise != 0 {
		text = units.BytesSize(float64(otherwise))
	}
	f.Var(&value{text, "SIZE", func(s string) error {
		n, err := units.RAMInBytes(s)
		if err == nil && n <= 0 {
			err = errors.New("it is no size")
		}
		*to = n
		return err
	}}, name, usage)
}

// splitEscaped splits a text at a separator, except after a backslash.
func splitEscaped(s string, separator byte) (out []string) {
	var item []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == separator:
			i++
			item = append(item, separator)
		case s[i] == separator:
			out = append(out, string(item))
			item = nil
		default:
			item = append(item, s[i])
		}
	}
	if len(item) > 0 {
		out = append(out, string(item))
	}
	return out
}
