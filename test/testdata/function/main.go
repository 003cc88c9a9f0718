// Command function is a function's program and its runtime in one, with nothing but the Lambda Runtime API. As /lambda-entrypoint.sh it's what AWS's base
// images have there: a program that gets the handler as its only argument, and finds code at /var/task and layers at /opt.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// seen is what a function sees of where it runs.
type seen struct {
	Args      []string
	Directory string
	Env       map[string]string
	Files     map[string]string // what is in the files of code and layers
	Writable  []string          // of the directories of code, layers and /tmp
	TmpMiB    int64
	Event     json.RawMessage
	Answer    string // of the URL that the event names
}

type event struct {
	Fail bool
	Get  string
}

func main() {
	if filepath.Base(os.Args[0]) == "lambda-entrypoint.sh" && len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "the entry point needs the handler, and nothing else")
		os.Exit(142)
	}
	api := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/invocation/"
	for {
		next, err := http.Get(api + "next")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		body, err := io.ReadAll(next.Body)
		next.Body.Close()
		if err != nil || next.StatusCode != http.StatusOK {
			fmt.Fprintln(os.Stderr, next.Status, string(body), err)
			os.Exit(1)
		}
		kind, answer := handle(body)
		answered, err := http.Post(api+next.Header.Get("Lambda-Runtime-Aws-Request-Id")+"/"+kind, "application/json", bytes.NewReader(answer))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answered.Body.Close()
	}
}

func handle(body []byte) (kind string, answer []byte) {
	var e event
	json.Unmarshal(body, &e) //nolint:errcheck // it's shown as it is
	if e.Fail {
		return "error", []byte(`{"errorType": "Asked", "errorMessage": "as asked"}`)
	}
	fmt.Println("asked for", string(body))
	s := look(body)
	if e.Get != "" {
		s.Answer = get(e.Get)
	}
	answer, _ = json.Marshal(s) //nolint:errcheck // it's all texts
	return "response", answer
}

func look(body []byte) seen {
	s := seen{Args: os.Args, Env: map[string]string{}, Files: map[string]string{}, Event: body}
	s.Directory, _ = os.Getwd() //nolint:errcheck // then it's empty
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		s.Env[name] = value
	}
	for _, dir := range []string{s.Env["LAMBDA_TASK_ROOT"], "/opt"} {
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error { //nolint:errcheck // what there is
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".txt" {
				text, _ := os.ReadFile(path) //nolint:errcheck // then it's empty
				s.Files[path] = string(text)
			}
			return nil
		})
	}
	for _, dir := range []string{"/var/task", "/opt", "/tmp"} {
		if os.WriteFile(dir+"/written", nil, 0o600) == nil {
			s.Writable = append(s.Writable, dir)
		}
	}
	var disk syscall.Statfs_t
	if syscall.Statfs("/tmp", &disk) == nil {
		s.TmpMiB = int64(disk.Blocks) * disk.Bsize >> 20
	}
	return s
}

func get(url string) string {
	soon := http.Client{Timeout: 2 * time.Second}
	answer, err := soon.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	return answer.Status
}
