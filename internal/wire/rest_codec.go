package wire

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// decode reads the request into the operation's struct.
func (q *restRequest) decode(into reflect.Value) error {
	var payload *member
	inline := false
	for i := range q.op.in.members {
		m := &q.op.in.members[i]
		field := into.Field(m.index)
		switch m.place.In {
		case inPayload:
			payload = m
		case inBody:
			inline = inline || m.place.Name != ""
		case inPath:
			setText(m.shape, field, map[string]string{"Bucket": q.target.bucket, "Key": q.target.key}[m.place.Name]) //nolint:errcheck // both are strings
		case inHeaders:
			q.decodeHeaders(m, field)
		default:
			if err := q.decodeText(m, field); err != nil {
				return err
			}
		}
	}
	switch {
	case payload != nil:
		return q.decodePayload(payload, into.Field(payload.index))
	case inline:
		return q.decodeXML(q.op.in, into)
	}
	_, err := q.body.all(q.api.MaxBody, q.Header)
	return err
}

// decodeText reads a parameter or a header. A presigned URL may have as parameters what is a header otherwise.
func (q *restRequest) decodeText(m *member, field reflect.Value) error {
	text, there := "", false
	switch {
	case m.place.In == inQuery:
		text, there = q.target.query.Get(m.place.Name), q.target.query.Has(m.place.Name)
	case strings.EqualFold(m.place.Name, "Content-Length"):
		text, there = strconv.FormatInt(q.body.length, 10), q.body.length >= 0
	default:
		values := q.Header.Values(m.place.Name)
		if len(values) == 0 && strings.HasPrefix(m.place.Name, "x-amz-") {
			values = parameter(q.target.query, m.place.Name)
		}
		text, there = strings.Join(values, ","), len(values) > 0
	}
	if !there {
		return nil
	}
	if !utf8.ValidString(text) {
		return refuse("InvalidArgument", "%s is not UTF-8.", m.place.Name)
	}
	if m.shape.kind == kindList || m.shape.kind == kindPointer && m.shape.elem.kind == kindList {
		for item := range strings.SplitSeq(text, ",") {
			element := reflect.New(field.Type().Elem()).Elem()
			if err := setText(m.shape.elem, element, strings.TrimSpace(item)); err != nil {
				return refuse("InvalidArgument", "%s is invalid: %q.", m.place.Name, text)
			}
			field.Set(reflect.Append(field, element))
		}
		return nil
	}
	if err := setText(m.shape, field, text); err != nil {
		return refuse("InvalidArgument", "Provided %s is not valid: %q.", m.place.Name, text)
	}
	return nil
}

// parameter is a query's parameter whatever the case of its name.
func parameter(query url.Values, name string) []string {
	for n, values := range query {
		if strings.EqualFold(n, name) {
			return values
		}
	}
	return nil
}

// decodeHeaders reads the headers with a prefix, as metadata comes.
func (q *restRequest) decodeHeaders(m *member, field reflect.Value) {
	all := map[string]string{}
	for name, values := range q.target.query {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.place.Name); ok {
			all[rest] = strings.Join(values, ",")
		}
	}
	for name, values := range q.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.place.Name); ok {
			all[rest] = strings.Join(values, ",")
		}
	}
	if len(all) > 0 {
		field.Set(reflect.ValueOf(all))
	}
}

// decodePayload reads the member that is the body.
func (q *restRequest) decodePayload(m *member, field reflect.Value) error {
	if m.shape.kind == kindStream {
		field.Set(reflect.ValueOf(q.body))
		return nil
	}
	sh := m.shape
	if sh.kind == kindPointer {
		sh = sh.elem
	}
	if sh.kind == kindStructure {
		into := reflect.New(sh.typ)
		if q.body.length == 0 {
			_, err := q.body.all(q.api.MaxBody, q.Header)
			return err
		}
		if err := q.decodeXML(sh, into.Elem()); err != nil {
			return err
		}
		field.Set(into)
		return nil
	}
	body, err := q.body.all(q.api.MaxBody, q.Header)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return refuse("InvalidRequest", "The request's body is not UTF-8.")
	}
	return setText(m.shape, field, string(body))
}

// decodeXML reads the body's XML into a struct.
func (q *restRequest) decodeXML(sh *shape, into reflect.Value) error {
	body, err := q.body.all(q.api.MaxBody, q.Header)
	if err != nil || len(body) == 0 {
		return err
	}
	root, err := parseXML(body)
	if err != nil {
		return err
	}
	return root.structure(sh, into)
}

// setText sets a scalar from its text.
func setText(sh *shape, v reflect.Value, text string) (err error) {
	switch sh.kind {
	case kindPointer:
		v.Set(reflect.New(sh.elem.typ))
		return setText(sh.elem, v.Elem(), text)
	case kindString:
		v.SetString(text)
	case kindBool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case kindInt:
		var n int64
		n, err = strconv.ParseInt(text, 10, sh.typ.Bits())
		v.SetInt(n)
	case kindTime:
		var t time.Time
		if t, err = http.ParseTime(text); err != nil {
			t, err = time.Parse(time.RFC3339, text)
		}
		v.Set(reflect.ValueOf(t))
	default:
		return errors.New("not a scalar")
	}
	return err
}

// encode answers with the operation's output.
func (q *restRequest) encode(out reflect.Value) error {
	var payload *member
	inline := false
	h := q.w.Header()
	for i := range q.op.out.members {
		m := &q.op.out.members[i]
		field := out.Field(m.index)
		switch m.place.In {
		case inPayload:
			payload = m
		case inBody:
			inline = inline || m.place.Name != ""
		case inHeaders:
			for _, key := range sortedKeys(field) {
				h[m.place.Name+key.String()] = []string{headerSafe.Replace(field.MapIndex(key).String())} // as it is: clients take the name from it
			}
		case inHeader:
			if text := headerText(m.shape, field); text != "" {
				h.Set(m.place.Name, text)
			}
		}
	}
	status := q.route.Status
	if h.Get("Content-Range") != "" {
		status = http.StatusPartialContent
	}
	e := xmlEncoder{b: []byte(xmlHeader), rest: true}
	root := cmp.Or(q.api.Roots[q.route.Operation], q.route.Operation+"Result")
	switch {
	case payload != nil:
		return q.encodePayload(&e, status, root, payload, out.Field(payload.index))
	case !inline || status == http.StatusNoContent:
		q.send(status, nil)
		return nil
	case q.route.Operation == "GetBucketLocation": // its one member is the root itself
		e.open(root + ` xmlns="` + q.api.Namespace + `"`)
		e.value(q.op.out.members[0].shape, q.op.out.members[0].in(address(out)))
		e.close(root)
	default:
		e.root(root, q.api.Namespace, q.op.out, address(out))
	}
	if e.err == nil {
		q.send(status, e.b)
	}
	return e.err
}

func (q *restRequest) encodePayload(e *xmlEncoder, status int, root string, m *member, v reflect.Value) error {
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			q.send(status, nil)
			return nil
		}
		if body, ok := v.Interface().(io.ReadCloser); ok {
			return q.stream(status, body)
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.String { // a policy
		q.w.Header().Set("Content-Length", strconv.Itoa(v.Len()))
		q.send(status, []byte(v.String()))
		return nil
	}
	sh := m.shape
	if sh.kind == kindPointer {
		sh = sh.elem
	}
	if q.api.Roots[q.route.Operation] == "" {
		root = m.place.Name
	}
	e.root(root, q.api.Namespace, sh, address(v))
	if e.err == nil {
		q.send(status, e.b)
	}
	return e.err
}

// headerText is a member as a header has it; "" where it is not there.
func headerText(sh *shape, v reflect.Value) string {
	switch sh.kind {
	case kindPointer:
		if v.IsNil() {
			return ""
		}
		return headerText(sh.elem, v.Elem())
	case kindString:
		return headerSafe.Replace(v.String())
	case kindBool:
		return strconv.FormatBool(v.Bool())
	case kindInt:
		return strconv.FormatInt(v.Int(), 10)
	case kindTime:
		return v.Interface().(time.Time).UTC().Format(http.TimeFormat)
	}
	return ""
}

// headerSafe keeps a text inside its header.
var headerSafe = strings.NewReplacer("\r", " ", "\n", " ")
