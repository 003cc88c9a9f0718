package cloudcontrol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// patch is a JSON patch (RFC 6902).
type patch []operation

// operation is one step of a patch. Value is absent, or null, where the operation has none.
type operation struct {
	Op    string `json:"op"`
	Path  *string
	From  *string
	Value json.RawMessage
}

// The most operations of a patch, and bytes that it may copy. A few copies of copies would otherwise fill the memory.
const (
	maxOperations = 1000
	maxCopied     = 262_144
)

// parsePatch reads a patch.
func parsePatch(text string) (patch, error) {
	var p patch
	if err := json.Unmarshal([]byte(text), &p); err != nil || p == nil {
		return nil, errors.New("the patch document is not a JSON array of operations")
	}
	if len(p) > maxOperations {
		return nil, fmt.Errorf("the patch document has more than %d operations", maxOperations)
	}
	for i, op := range p {
		needsValue := slices.Contains([]string{"add", "replace", "test"}, op.Op)
		needsFrom := op.Op == "move" || op.Op == "copy"
		switch {
		case !needsValue && !needsFrom && op.Op != "remove":
			return nil, fmt.Errorf("operation %d of the patch is %q, which there is none of", i, op.Op)
		case op.Path == nil:
			return nil, fmt.Errorf("operation %d of the patch has no path", i)
		case needsValue && op.Value == nil:
			return nil, fmt.Errorf("operation %d of the patch has no value", i)
		case needsFrom && op.From == nil:
			return nil, fmt.Errorf("operation %d of the patch has no from", i)
		}
	}
	return p, nil
}

// apply returns a document as the patch makes it. The document itself stays as it is.
func (p patch) apply(document any) (any, error) {
	document, copied := clone(document), 0
	for i, op := range p {
		var err error
		if op.Op == "copy" {
			value, getErr := at(document, *op.From)
			if getErr != nil {
				return nil, fmt.Errorf("operation %d of the patch: %w", i, getErr)
			}
			text, _ := json.Marshal(value) //nolint:errchkjson // it came from JSON
			if copied += len(text); copied > maxCopied {
				return nil, fmt.Errorf("the patch copies more than %d bytes", maxCopied)
			}
		}
		if document, err = op.apply(document); err != nil {
			return nil, fmt.Errorf("operation %d of the patch: %w", i, err)
		}
	}
	return document, nil
}

func (op operation) apply(document any) (any, error) {
	path := *op.Path
	switch op.Op {
	case "add", "replace":
		value, err := valueOf(op.Value)
		if err != nil {
			return nil, err
		}
		return put(document, path, value, op.Op == "replace")
	case "remove":
		return remove(document, path)
	case "copy":
		value, err := at(document, *op.From)
		if err != nil {
			return nil, err
		}
		return put(document, path, clone(value), false)
	case "move":
		if strings.HasPrefix(path, *op.From+"/") {
			return nil, fmt.Errorf("%s can't be moved into itself", *op.From)
		}
		value, err := at(document, *op.From)
		if err != nil {
			return nil, err
		}
		if document, err = remove(document, *op.From); err != nil {
			return nil, err
		}
		return put(document, path, value, false)
	}
	return document, op.test(document) // parsePatch lets no other through
}

// test checks that a value is there, as the operation test asks for.
func (op operation) test(document any) error {
	want, err := valueOf(op.Value)
	if err != nil {
		return err
	}
	got, err := at(document, *op.Path)
	if err == nil && !reflect.DeepEqual(got, want) {
		err = fmt.Errorf("the value at %s is another one", *op.Path)
	}
	return err
}

func valueOf(text json.RawMessage) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// clone copies a document.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for name, member := range v {
			out[name] = clone(member)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i, one := range v {
			out[i] = clone(one)
		}
		return out
	}
	return v
}

// steps returns the names that a JSON pointer (RFC 6901) leads through.
func steps(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' {
		return nil, fmt.Errorf("%s is no JSON pointer", path)
	}
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, nil
}

// at returns the value that a path leads to.
func at(document any, path string) (any, error) {
	parts, err := steps(path)
	for _, part := range parts {
		if document, err = member(document, part, path); err != nil {
			return nil, err
		}
	}
	return document, err
}

func member(of any, name, path string) (any, error) {
	switch v := of.(type) {
	case map[string]any:
		if value, there := v[name]; there {
			return value, nil
		}
	case []any:
		if i, err := place(name, len(v)); err == nil {
			return v[i], nil
		}
	}
	return nil, fmt.Errorf("there is nothing at %s", path)
}

// place reads an index that must be below a length. It has no leading zeros.
func place(text string, length int) (int, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= length || strconv.Itoa(i) != text {
		return 0, fmt.Errorf("there is no element %s", text)
	}
	return i, nil
}

// change returns a document in which the value that holds the end of a path has become another one.
func change(document any, parts []string, path string, to func(holder any, name string) (any, error)) (any, error) {
	if len(parts) == 1 {
		return to(document, parts[0])
	}
	inner, err := member(document, parts[0], path)
	if err != nil {
		return nil, err
	}
	if inner, err = change(inner, parts[1:], path, to); err != nil {
		return nil, err
	}
	switch v := document.(type) {
	case map[string]any:
		v[parts[0]] = inner
	case []any:
		i, err := place(parts[0], len(v))
		if err != nil {
			return nil, err
		}
		v[i] = inner
	}
	return document, nil
}

// put puts a value at a path: in the place of the one that must be there, or of none.
func put(document any, path string, value any, isThere bool) (any, error) {
	parts, err := steps(path)
	if err != nil || len(parts) == 0 {
		return value, err
	}
	return change(document, parts, path, func(holder any, name string) (any, error) {
		switch v := holder.(type) {
		case map[string]any:
			if _, there := v[name]; isThere && !there {
				return nil, fmt.Errorf("there is nothing at %s", path)
			}
			v[name] = value
			return v, nil
		case []any:
			if isThere {
				i, err := place(name, len(v))
				if err == nil {
					v[i] = value
				}
				return v, err
			}
			if name == "-" {
				return append(v, value), nil
			}
			i, err := place(name, len(v)+1)
			if err != nil {
				return nil, err
			}
			return slices.Insert(v, i, value), nil
		}
		return nil, fmt.Errorf("nothing can be put at %s", path)
	})
}

// remove takes away what is at a path.
func remove(document any, path string) (any, error) {
	parts, err := steps(path)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, errors.New("the whole resource can't be removed by a patch")
	}
	return change(document, parts, path, func(holder any, name string) (any, error) {
		if _, err := member(holder, name, path); err != nil {
			return nil, err
		}
		switch v := holder.(type) {
		case map[string]any:
			delete(v, name)
		case []any:
			i, err := place(name, len(v))
			if err != nil {
				return nil, err
			}
			return slices.Delete(v, i, i+1), nil
		}
		return holder, nil
	})
}
