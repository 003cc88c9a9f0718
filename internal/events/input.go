package events

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/events/eventpattern"
	"github.com/pintle/pintle/internal/state"
)

// What a target gets instead of the event: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html

// maxPaths is the most paths of an InputPathsMap.
const maxPaths = 100

// placeholder is a variable in a template.
var placeholder = regexp.MustCompile(`<([A-Za-z0-9._-]+)>`)

// predefined are the variables that every template has.
var predefined = map[string]bool{
	"aws.events.rule-arn":             true,
	"aws.events.rule-name":            true,
	"aws.events.event.ingestion-time": true,
	"aws.events.event":                true,
	"aws.events.event.json":           true,
}

// checkInput refuses a target whose input can't be made.
func checkInput(t *types.Target) error {
	id := aws.ToString(t.Id)
	given := 0
	for _, is := range []bool{t.Input != nil, t.InputPath != nil, t.InputTransformer != nil} {
		if is {
			given++
		}
	}
	if given > 1 {
		return invalid("Only one of Input, InputPath, or InputTransformer must be provided for target %s.", id)
	}
	if t.Input != nil && !json.Valid([]byte(*t.Input)) {
		return invalid("JSON syntax error in input for target %s.", id)
	}
	if t.InputPath != nil {
		if _, ok := parsePath(*t.InputPath); !ok {
			return invalid("InputPath for target %s is invalid.", id)
		}
	}
	tr := t.InputTransformer
	if tr == nil {
		return nil
	}
	if len(tr.InputPathsMap) > maxPaths {
		return invalid("InputPathsMap for target %s has %d paths, and can have %d.", id, len(tr.InputPathsMap), maxPaths)
	}
	for name, path := range tr.InputPathsMap {
		if _, ok := parsePath(path); !ok || strings.HasPrefix(name, "AWS") {
			return invalid("InputPath for target %s is invalid.", id)
		}
	}
	for _, found := range placeholder.FindAllStringSubmatch(aws.ToString(tr.InputTemplate), -1) {
		if _, given := tr.InputPathsMap[found[1]]; !given && !predefined[found[1]] {
			return invalid("InputTemplate for target %s contains invalid placeholder %s.", id, found[1])
		}
	}
	return nil
}

// maxInput is the most bytes that a template makes of an event: no target takes more. A template may name a large part of an event many times.
const maxInput = 1 << 20

// inputOf returns what a target gets of an event. It reports false if that isn't JSON, which EventBridge doesn't send, or too much.
func inputOf(r *state.EventRule, t *types.Target, event string, arrived string) (string, bool) {
	switch {
	case t.Input != nil:
		return *t.Input, true
	case t.InputPath != nil:
		path, _ := parsePath(*t.InputPath)
		found, ok := path.in(decoded(event))
		if !ok {
			return "null", true
		}
		return string(encoded(found)), true
	case t.InputTransformer != nil:
		return transform(r, t.InputTransformer, event, arrived)
	}
	return event, true
}

func decoded(event string) any {
	value, err := eventpattern.Decode(event)
	if err != nil {
		return nil // we made it
	}
	return value
}

// transform fills in a template.
func transform(r *state.EventRule, tr *types.InputTransformer, event, arrived string) (string, bool) {
	value := decoded(event)
	template := strings.TrimSpace(aws.ToString(tr.InputTemplate))
	isText := strings.HasPrefix(template, `"`)
	var out strings.Builder
	last, quoted := 0, false
	for _, at := range placeholder.FindAllStringSubmatchIndex(template, -1) {
		quoted = quotedAfter(template[last:at[0]], quoted)
		out.WriteString(template[last:at[0]])
		last = at[1]
		v, found := variable(r, tr, template[at[2]:at[3]], value, arrived)
		out.WriteString(insertion(v, found, quoted, isText))
		if out.Len() > maxInput {
			return "", false
		}
	}
	out.WriteString(template[last:])
	text := out.String()
	if !isText {
		return text, json.Valid([]byte(text))
	}
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			return text, false
		}
	}
	return text, true
}

// quotedAfter reports whether what follows a part of a template is in quotation marks.
func quotedAfter(part string, quoted bool) bool {
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		}
	}
	return quoted
}

// variable returns the value of a variable.
func variable(r *state.EventRule, tr *types.InputTransformer, name string, event any, arrived string) (value any, found bool) {
	switch name {
	case "aws.events.rule-arn":
		return *r.Arn, true
	case "aws.events.rule-name":
		return *r.Name, true
	case "aws.events.event.ingestion-time":
		return arrived, true
	case "aws.events.event.json":
		return event, true
	case "aws.events.event":
		return withoutDetail(event), true
	}
	path, _ := parsePath(tr.InputPathsMap[name])
	return path.in(event)
}

// withoutDetail returns an event without its detail, which has its type under another name there, as AWS does.
func withoutDetail(event any) any {
	properties, _ := event.(map[string]any)
	short := map[string]any{}
	for name, value := range properties {
		switch name {
		case "detail":
		case "detail-type":
			short["detailType"] = value
		default:
			short[name] = value
		}
	}
	return short
}

// insertion returns what stands in a template for a variable. In quotation marks a text is without its own, and so is an object inside a
// template that is a text; elsewhere an object in quotation marks isn't JSON any more, as on AWS. What isn't there is an empty text.
func insertion(value any, found, quoted, isText bool) string {
	text, isString := value.(string)
	switch {
	case !found && quoted:
		return ""
	case !found:
		return `""`
	case !quoted:
		return string(encoded(value))
	case isString:
		b := encoded(text)
		return string(b[1 : len(b)-1])
	case isText:
		return unquoted(encoded(value))
	}
	return string(encoded(value))
}

// unquoted returns JSON without quotation marks, those in texts included: what stands in a text must leave it one.
func unquoted(b []byte) string {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && b[i+1] == '"':
			i++
		case b[i] == '\\':
			out = append(out, b[i], b[i+1])
			i++
		case b[i] != '"':
			out = append(out, b[i])
		}
	}
	return string(out)
}

// encoded returns a value as JSON, without escapes that only web pages need.
func encoded(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // it came from JSON, or from our structs
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// path is a JSON path: names, and indexes of lists.
type path []any

// step is a part of a path behind the dollar sign.
var step = regexp.MustCompile(`^(?:\.([\w-]+)|\['([^']+)'\]|\["([^"]+)"\]|\[(\d{1,6})\])`)

// parsePath reads a JSON path.
func parsePath(text string) (p path, ok bool) {
	rest, ok := strings.CutPrefix(text, "$")
	for ok && rest != "" {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return nil, false
		}
		rest = rest[len(m[0]):]
		if m[4] != "" {
			i, _ := strconv.Atoi(m[4])
			p = append(p, i)
			continue
		}
		p = append(p, m[1]+m[2]+m[3])
	}
	return p, ok
}

// in returns what the path leads to.
func (p path) in(value any) (found any, ok bool) {
	for _, to := range p {
		switch to := to.(type) {
		case string:
			properties, _ := value.(map[string]any)
			if value, ok = properties[to]; !ok {
				return nil, false
			}
		case int:
			list, _ := value.([]any)
			if to >= len(list) {
				return nil, false
			}
			value = list[to]
		}
	}
	return value, true
}
