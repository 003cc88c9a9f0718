package sqs

import (
	"crypto/md5" //nolint:gosec // SQS uses it as a checksum
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// value is the stored value of a message attribute.
type value struct {
	Type   string `json:"t"`
	Text   string `json:"s,omitempty"`
	Binary []byte `json:"b,omitempty"`
}

// maxAttributes is the most attributes that a message may have: "Amazon SQS message quotas" in the developer guide.
const maxAttributes = 10

// attributeName matches attribute names: "Amazon SQS message metadata" in the developer guide. AWS takes letters of any alphabet.
var attributeName = regexp.MustCompile(`^[\pL\pN_-]+(\.[\pL\pN_-]+)*$`)

// valuesOf checks a message's attributes. It returns the values to store, and their size in bytes.
func valuesOf(in map[string]types.MessageAttributeValue) (out map[string]value, size int, err error) {
	if len(in) > maxAttributes {
		return nil, 0, invalid("Number of message attributes [%d] exceeds the allowed maximum [%d].", len(in), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		lower := strings.ToLower(name)
		if len(name) > 256 || !attributeName.MatchString(name) || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
			return nil, 0, invalid(
				"Message (user) attribute name '%s' must be 1 to 256 letters, digits, _, - and single dots, and must not begin "+
					"with AWS. or Amazon.",
				name,
			)
		}
		a := in[name]
		v, err := valueOf(name, aws.ToString(a.DataType), a.StringValue, a.BinaryValue, len(a.StringListValues)+len(a.BinaryListValues) > 0)
		if err != nil {
			return nil, 0, err
		}
		if out == nil {
			out = map[string]value{}
		}
		out[name] = v
		size += len(name) + len(v.Type) + len(v.Text) + len(v.Binary)
	}
	return out, size, nil
}

func valueOf(name, dataType string, text *string, binary []byte, lists bool) (value, error) {
	if lists {
		return value{}, refuse("UnsupportedOperation", "Message (user) attribute '%s' has a list of values, which SQS does not take.", name)
	}
	kind, custom, _ := strings.Cut(dataType, ".")
	switch {
	case dataType == "":
		return value{}, invalid("The message attribute '%s' must contain non-empty message attribute type.", name)
	case kind != "String" && kind != "Number" && kind != "Binary" || strings.HasSuffix(dataType, ".") && custom == "" ||
		len(dataType) > 256:
		return value{}, invalid(
			"The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: "+
				"Binary, Number, String.",
			name,
		)
	case kind == "Binary" && (len(binary) == 0 || text != nil):
		return value{}, invalid("Message (user) attribute '%s' must contain a non-empty value of type 'Binary'.", name)
	case kind != "Binary" && (aws.ToString(text) == "" || binary != nil):
		return value{}, invalid("Message (user) attribute '%s' must contain a non-empty value of type 'String'.", name)
	case kind == "Number" && !isNumber(*text):
		return value{}, invalid("Can't cast the value of message (user) attribute '%s' to a number.", name)
	}
	if !isXML(aws.ToString(text)) {
		return value{}, invalid("The value of message (user) attribute '%s' has invalid characters. %s", name, validCharacters)
	}
	return value{dataType, aws.ToString(text), binary}, nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && !strings.ContainsAny(s, "xXpP_nN")
}

// attribute returns the value as clients get it.
func (v value) attribute() types.MessageAttributeValue {
	out := types.MessageAttributeValue{DataType: aws.String(v.Type)}
	if v.isBinary() {
		out.BinaryValue = v.Binary
		return out
	}
	out.StringValue = aws.String(v.Text)
	return out
}

func (v value) isBinary() bool { return strings.HasPrefix(v.Type, "Binary") }

// md5Of returns the MD5 of a text, in hexadecimal digits.
func md5Of(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// md5OfValues returns the MD5 of attributes, nil if there are none: "Calculating the MD5 message digest for message attributes" in the
// developer guide.
func md5OfValues(values map[string]value) *string {
	if len(values) == 0 {
		return nil
	}
	h := md5.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := values[name]
		writeSized(h, name)
		writeSized(h, v.Type)
		if v.isBinary() {
			h.Write([]byte{2})
			writeSized(h, string(v.Binary))
			continue
		}
		h.Write([]byte{1})
		writeSized(h, v.Text)
	}
	return aws.String(hex.EncodeToString(h.Sum(nil)))
}

func writeSized(h hash.Hash, s string) {
	var size [4]byte
	binary.BigEndian.PutUint32(size[:], uint32(len(s)))
	h.Write(size[:])
	h.Write([]byte(s))
}

// wantedValues returns the attributes that a receive asks for: by name, by prefix.*, or All of them, for which AWS takes * too.
func wantedValues(values map[string]value, names []string) map[string]value {
	out := map[string]value{}
	for name, v := range values {
		if slices.ContainsFunc(names, func(want string) bool {
			prefix, isPrefix := strings.CutSuffix(want, ".*")
			return want == "All" || want == "*" || want == name || isPrefix && strings.HasPrefix(name, prefix)
		}) {
			out[name] = v
		}
	}
	return out
}
