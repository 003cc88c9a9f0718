// Command byname does what no program of ours may: it calls methods by names that it's given, and runs templates.
package main

import (
	"os"
	"reflect"
	"text/template"
)

func main() {
	for _, name := range os.Args {
		reflect.ValueOf(os.Stdout).MethodByName(name)
		template.Must(template.New("").Parse(name)).Execute(os.Stdout, nil) //nolint:errcheck // nobody runs it
	}
}
