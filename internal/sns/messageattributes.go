package sns

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// wrongAttribute returns the error of a message's attribute.
func wrongAttribute(format string, args ...any) error {
	return refuse("ParameterValueInvalid", format, args...)
}

// checkAttributes refuses attributes that messages can't have.
func checkAttributes(attributes map[string]types.MessageAttributeValue) error {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if err := checkAttributeName(name); err != nil {
			return err
		}
		if err := checkAttribute(name, attributes[name]); err != nil {
			return err
		}
	}
	return nil
}

// maxAttributeName is the most bytes of an attribute's name.
const maxAttributeName = 256

func checkAttributeName(name string) error {
	if len(name) > maxAttributeName || name == "" {
		return wrongAttribute("Length of message attribute name must be less than %d bytes.", maxAttributeName)
	}
	for _, r := range name {
		if !strings.ContainsRune("_-.", r) && (r > 'z' || !isAlphanumeric(byte(r))) {
			return wrongAttribute("Invalid non-alphanumeric character '%s' was found in the message attribute name. "+
				"Can only include alphanumeric characters, hyphens, underscores, or dots.", fmt.Sprintf("#x%X", r))
		}
	}
	switch {
	case name[0] == '.':
		return wrongAttribute("Invalid message attribute name starting with character '.' was found.")
	case name[len(name)-1] == '.':
		return wrongAttribute("Invalid message attribute name ending with character '.' was found.")
	case strings.Contains(name, ".."):
		return wrongAttribute("Message attribute name can not have successive '.' character.")
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// checkAttribute checks an attribute's type, and that the value is of that.
func checkAttribute(name string, a types.MessageAttributeValue) error {
	dataType := valueOf(a.DataType)
	kind, label, labelled := strings.Cut(dataType, ".")
	switch {
	case kind != "Binary" && kind != "Number" && kind != "String" || labelled && label == "":
		return wrongAttribute("The message attribute '%s' has an invalid message attribute type, "+
			"the set of supported type prefixes is Binary, Number, and String.", name)
	case kind == "Binary" && a.StringValue != nil:
		return wrongAttribute("The message attribute '%s' with type 'Binary' must use field 'Binary'.", name)
	case kind != "Binary" && a.BinaryValue != nil:
		return wrongAttribute("The message attribute '%s' with type '%s' must use field 'String'.", name, kind)
	case len(valueOf(a.StringValue))+len(a.BinaryValue) == 0:
		return wrongAttribute("The message attribute '%s' must contain non-empty message attribute value "+
			"for message attribute type '%s'.", name, dataType)
	}
	if kind == "Number" {
		if _, err := strconv.ParseFloat(*a.StringValue, 64); err != nil {
			return wrongAttribute("Could not cast message attribute '%s' value to number.", name)
		}
	}
	return nil
}
