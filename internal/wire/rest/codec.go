package rest

import (
	"encoding/base64"
	"io"
	"mime"
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

// decode decodes the request into the operation's struct.
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
			inline = inline || q.api.Style.inline(m)
		case model.InPath:
			if err := codec.SetText(m.Shape, field, q.labels[m.Place.Name]); err != nil {
				return refusal.New("InvalidArgument", "Provided %s is not valid: %q.", m.Place.Name, q.labels[m.Place.Name])
			}
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
		return q.api.Style.decode(q, q.op.In, into)
	}
	_, err := q.wholeBody()
	return err
}

// decodeText decodes a parameter or a header. A presigned URL may have parameters for what is usually a header.
func (q *request) decodeText(m *codec.Member, field reflect.Value) error {
	text, there := "", false
	switch {
	case m.Place.In == model.InQuery:
		text, there = q.query.Get(m.Place.Name), q.query.Has(m.Place.Name)
	case strings.EqualFold(m.Place.Name, "Content-Length"):
		text, there = strconv.FormatInt(q.body.length, 10), q.body.length >= 0
	default:
		values := q.Header.Values(m.Place.Name)
		if len(values) == 0 && mayBeSignedInURL(m.Place.Name) {
			values = parameter(q.query, m.Place.Name)
		}
		text, there = strings.Join(values, ","), len(values) > 0
	}
	if !there {
		return nil
	}
	if !utf8.ValidString(text) {
		return refusal.New("InvalidArgument", "%s is not UTF-8.", m.Place.Name)
	}
	if m.Place.In == model.InQuery && m.Shape.Kind == codec.KindList {
		return setItems(m, field, q.query[m.Place.Name])
	}
	if m.Shape.Kind == codec.KindList || m.Shape.Kind == codec.KindPointer && m.Shape.Elem.Kind == codec.KindList {
		return setItems(m, field, strings.Split(text, ","))
	}
	if text == "" && m.Place.In == model.InQuery && isNumber(m.Shape) {
		return nil // S3 takes max-parts= for none
	}
	if err := codec.SetText(m.Shape, field, text); err != nil {
		return misread(m, text)
	}
	return nil
}

// misread is the error of a parameter or a header that isn't of its type, in S3's words.
func misread(m *codec.Member, text string) error {
	name, why := m.Place.Name, "Provided "+m.Place.Name+" is not valid"
	switch {
	case name == "partNumber":
		why = "Part number must be an integer between 1 and 10000, inclusive"
	case isNumber(m.Shape):
		why = "Provided " + name + " not an integer or within integer range"
	}
	return invalidField(name, text, "%s", why)
}

// mayBeSignedInURL reports whether a presigned URL may have a header as a parameter. A condition there must not be lost. A body's
// checksum is no such header: the SDK for JavaScript signs that of no body into its URLs, since it has none then, and S3 ignores it there.
func mayBeSignedInURL(header string) bool {
	if sum, ok := strings.CutPrefix(strings.ToLower(header), "x-amz-checksum-"); ok && sum != "algorithm" && sum != "mode" && sum != "type" {
		return false
	}
	return header != "x-amz-sdk-checksum-algorithm" && (strings.HasPrefix(header, "x-amz-") || strings.HasPrefix(header, "If-"))
}

// isNumber reports whether a shape is an integer, or a pointer to one.
func isNumber(s *codec.Shape) bool {
	return s.Kind == codec.KindInt || s.Kind == codec.KindPointer && s.Elem.Kind == codec.KindInt
}

// setItems sets a list from its elements' texts.
func setItems(m *codec.Member, field reflect.Value, items []string) error {
	for _, item := range items {
		element := reflect.New(field.Type().Elem()).Elem()
		if err := codec.SetText(m.Shape.Elem, element, strings.TrimSpace(item)); err != nil {
			return refusal.New("InvalidArgument", "%s is invalid: %q.", m.Place.Name, strings.Join(items, ","))
		}
		field.Set(reflect.Append(field, element))
	}
	return nil
}

// parameter returns a query's parameter, ignoring the case of its name.
func parameter(query url.Values, name string) []string {
	for n, values := range query {
		if strings.EqualFold(n, name) {
			return values
		}
	}
	return nil
}

// decodeHeaders decodes the headers with a prefix, such as metadata.
func (q *request) decodeHeaders(m *codec.Member, field reflect.Value) {
	all := map[string]string{}
	for name, values := range q.query {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.Place.Name); ok {
			all[rest] = decodeWords(strings.Join(values, ","))
		}
	}
	for name, values := range q.Header {
		if rest, ok := strings.CutPrefix(strings.ToLower(name), m.Place.Name); ok {
			all[rest] = decodeWords(strings.Join(values, ","))
		}
	}
	if len(all) > 0 {
		field.Set(reflect.ValueOf(all))
	}
}

// decodePayload decodes the member that is the body.
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
			_, err := q.wholeBody()
			return err
		}
		if err := q.api.Style.decode(q, sh, into.Elem()); err != nil {
			return err
		}
		field.Set(into)
		return nil
	}
	body, err := q.wholeBody()
	if err != nil {
		return err
	}
	if !utf8.Valid(body) {
		return refusal.New("InvalidRequest", "The request's body is not UTF-8.")
	}
	return codec.SetText(m.Shape, field, string(body))
}

// encode sends the operation's output. It sets the headers; the style writes the body.
func (q *request) encode(out reflect.Value) error {
	var payload *codec.Member
	h := q.w.Header()
	for i := range q.op.Out.Members {
		m := &q.op.Out.Members[i]
		field := out.Field(m.Index)
		switch m.Place.In {
		case model.InPayload:
			payload = m
		case model.InHeaders:
			for _, key := range codec.SortedKeys(field) {
				h[m.Place.Name+key.String()] = []string{encodeWord(field.MapIndex(key).String())} // not canonical: clients take the name from it
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
	if payload == nil {
		return q.api.Style.encode(q, status, out)
	}
	return q.encodePayload(status, payload, out.Field(payload.Index))
}

// encodePayload sends the member that is the body: a stream, a text, a structure, or nothing.
func (q *request) encodePayload(status int, m *codec.Member, v reflect.Value) error {
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			q.send(status, "", nil)
			return nil
		}
		if body, ok := v.Interface().(io.ReadCloser); ok {
			return q.stream(status, body)
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.String { // a policy
		q.w.Header().Set("Content-Length", strconv.Itoa(v.Len()))
		q.send(status, q.api.Style.mediaType(), []byte(v.String()))
		return nil
	}
	sh := m.Shape
	if sh.Kind == codec.KindPointer {
		sh = sh.Elem
	}
	return q.api.Style.encodePayload(q, status, m, sh, v)
}

// headerText returns a member as a header's text, or "" if it isn't set.
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

// headerSafe removes what would end a header's line.
var headerSafe = strings.NewReplacer("\r", " ", "\n", " ")

// encodeWord returns a value of metadata as a header has it: what isn't ASCII is an encoded word of RFC 2047.
func encodeWord(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return "=?UTF-8?B?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	return headerSafe.Replace(text)
}

// decodeWords returns the value that a header's encoded words stand for. Those that nobody can read stay as they are.
func decodeWords(text string) string {
	decoded, err := new(mime.WordDecoder).DecodeHeader(text)
	if err != nil {
		return text
	}
	return decoded
}
