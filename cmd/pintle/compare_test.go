package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyOfProfile: version 2 of the AWS CLI exports credentials; of version 1 those are taken that stand in files.
func TestKeyOfProfile(t *testing.T) {
	const exports = `echo '{"Version": 1, "AccessKeyId": "AKIA2", "SecretAccessKey": "two", "SessionToken": "t"}'`
	const refuses = `case "$2" in
export-credentials) echo "aws: error: argument subcommand: Invalid choice, valid choices are: get" >&2; exit 2;;
esac
`
	const files = refuses + `case "$3" in aws_access_key_id) echo AKIA1;; aws_secret_access_key) echo one;; *) exit 1;; esac`
	for name, c := range map[string]struct {
		script  string
		want    profileKey
		problem string
	}{
		"version 2":              {exports, profileKey{"AKIA2", "two", "t"}, ""},
		"version 1":              {files, profileKey{"AKIA1", "one", ""}, ""},
		"version 1 without keys": {refuses + "exit 1", profileKey{}, "use version 2"},
		"no such profile":        {"echo 'The config profile (p) could not be found' >&2; exit 255", profileKey{}, "could not be found"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "aws"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		key, err := keyOfProfile(t.Context(), "p")
		if key != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %+v, %v", name, key, err)
		}
	}
}
