package rest

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
	"github.com/pintle/pintle/internal/wire/refusal"
)

const xmlHeader = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// decode reads the request into the operation's struct.
func (q *request) decode(into reflect.Value) error {
	var payload *codec.Member
	inline := false
	for i := range q.op.In.Members {
		m := &q.op.In.Members[i]
		field := into.Field(m.Index)
		switch m.Place.In {
		case model.InPayload:
			payload = m
		case model.InBody:
			inline = inline || m.Place.Name != ""
		case model.InPath:
			codec.SetText(m.Shape, field, map[string]string{"Bucket": q.target.bucket, "Key": q.target.key}[m.Place.Name]) //nolint:errcheck // both are strings
		case model.InHeaders:
			q.decodeHeaders(m, field)
		default:
			if err := q.decodeText(m, field); err != nil {
				return err
			}
		}
	}
	switch {
	case payload != nil:
		return q.decodePayload(payload, into.Field(payload.Index))
	case inline:
		return q.decodeXML(q.op.In, into)
	}
	_, err := q.body.all(q.api.MaxBody, q.Header)
	return err
}

// decodeText reads a parameter or a header. A presigned URL may have as parameters what is a header otherwise.
func (q *request) decodeText(m *codec.Member, field reflect.Value) error {
	text, there := "", false
	switch {
	case m.Place.In == model.InQuery:
		text, there = q.target.query.Get(m.Place.Name), q.target.query.Has(m.Place.Name)
	case strings.EqualFold(m.Place.Name, "Content-Length"):
		text, there = strconv.FormatInt(q.body.length, 10), q.body.length >= 0
	default:
		values := q.Header.Values(m.Place.Name)
		if len(values) == 0 && strings.HasPrefix(m.Place.Name, "x-amz-") {
			values = parameter(q.target.query, m.Place.Name)
		}
		text, there = strings.Join(values, ","), len(values) > 0
	}
	if !there {
		return nil
	}
	if !utf8.ValidString(text) {
		return refusal.New("InvalidArgument", "%s is not UTF-8.", m.Place.Name)
	}
	if m.Shape.Kind == codec.KindList || m.Shape.Kind == codec.KindPointer && m.Shape.Elem.Kind == codec.KindList {
		for item := range strings.SplitSeq(text, ",") {
			element := reflect.New(field.Type().Elem()).Elem()
			if err := codec.SetText(m.Shape.Elem, element, strings.TrimSpace(item)); err != nil {
				return refusal.New("InvalidArgument", "%s is invalid: %q.", m.Place.Name, text)
			}
			field.Set(reflect.Append(field, element))
		}
		return nil
	}
	if err := codec.SetText(m.Shape, field, text); err != nil {
		return refusal.New("InvalidArgument", "Provided %s is not valid: %q.", m.Place.Name, text)
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
func (q *request) decodeHeaders(m *codec.Member, field reflect.Value) {
	all := map[string]string{}
	for name, values := range q.target.query {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.Place.Name); ok {
			all[rest] = strings.Join(values, ",")
		}
	}
	for name, values := range q.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.Place.Name); ok {
			all[rest] = strings.Join(values, ",")
		}
	}
	if len(all) > 0 {
		field.Set(reflect.ValueOf(all))
	}
}

// decodePayload reads the member that is the body.
func (q *request) decodePayload(m *codec.Member, field reflect.Value) error {
	if m.Shape.Kind == codec.KindStream {
		field.Set(reflect.ValueOf(q.body))
		return nil
	}
	sh := m.Shape
	if sh.Kind == codec.KindPointer {
		sh = sh.Elem
	}
	if sh.Kind == codec.KindStructure {
		into := reflect.New(sh.Type)
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
		return refusal.New("InvalidRequest", "The request's body is not UTF-8.")
	}
	return codec.SetText(m.Shape, field, string(body))
}

// DecodeXML reads the body's XML into a struct.
func (q *request) decodeXML(sh *codec.Shape, into reflect.Value) error {
	body, err := q.body.all(q.api.MaxBody, q.Header)
	if err != nil || len(body) == 0 {
		return err
	}
	return codec.DecodeXML(body, sh, into)
}

// encode answers with the operation's output.
func (q *request) encode(out reflect.Value) error {
	var payload *codec.Member
	inline := false
	h := q.w.Header()
	for i := range q.op.Out.Members {
		m := &q.op.Out.Members[i]
		field := out.Field(m.Index)
		switch m.Place.In {
		case model.InPayload:
			payload = m
		case model.InBody:
			inline = inline || m.Place.Name != ""
		case model.InHeaders:
			for _, key := range codec.SortedKeys(field) {
				h[m.Place.Name+key.String()] = []string{headerSafe.Replace(field.MapIndex(key).String())} // as it is: clients take the name from it
			}
		case model.InHeader:
			if text := headerText(m.Shape, field); text != "" {
				h.Set(m.Place.Name, text)
			}
		}
	}
	status := q.route.Status
	if h.Get("Content-Range") != "" {
		status = http.StatusPartialContent
	}
	e := codec.XML{B: []byte(xmlHeader), REST: true}
	root := cmp.Or(q.api.Roots[q.route.Operation], q.route.Operation+"Result")
	switch {
	case payload != nil:
		return q.encodePayload(&e, status, root, payload, out.Field(payload.Index))
	case !inline || status == http.StatusNoContent:
		q.send(status, nil)
		return nil
	case q.route.Operation == "GetBucketLocation": // its one member is the root itself
		e.Open(root + ` xmlns="` + q.api.Namespace + `"`)
		e.Value(q.op.Out.Members[0].Shape, q.op.Out.Members[0].In(codec.Address(out)))
		e.Close(root)
	default:
		e.Root(root, q.api.Namespace, q.op.Out, codec.Address(out))
	}
	if e.Err == nil {
		q.send(status, e.B)
	}
	return e.Err
}

func (q *request) encodePayload(e *codec.XML, status int, root string, m *codec.Member, v reflect.Value) error {
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
	sh := m.Shape
	if sh.Kind == codec.KindPointer {
		sh = sh.Elem
	}
	if q.api.Roots[q.route.Operation] == "" {
		root = m.Place.Name
	}
	e.Root(root, q.api.Namespace, sh, codec.Address(v))
	if e.Err == nil {
		q.send(status, e.B)
	}
	return e.Err
}

// headerText is a member as a header has it; "" where it is not there.
func headerText(sh *codec.Shape, v reflect.Value) string {
	switch sh.Kind {
	case codec.KindPointer:
		if v.IsNil() {
			return ""
		}
		return headerText(sh.Elem, v.Elem())
	case codec.KindString:
		return headerSafe.Replace(v.String())
	case codec.KindBool:
		return strconv.FormatBool(v.Bool())
	case codec.KindInt:
		return strconv.FormatInt(v.Int(), 10)
	case codec.KindTime:
		return v.Interface().(time.Time).UTC().Format(http.TimeFormat)
	}
	return ""
}

// headerSafe keeps a text inside its header.
var headerSafe = strings.NewReplacer("\r", " ", "\n", " ")
