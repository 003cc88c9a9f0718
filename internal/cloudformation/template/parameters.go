package template

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parameter is a parameter as it is declared.
type Parameter struct {
	Name        string
	Type        string
	Default     *string // nil if a value must be given
	NoEcho      bool
	Description string
	// AllowedValues are all that are allowed, or nil.
	AllowedValues         []string
	AllowedPattern        string
	ConstraintDescription string

	pattern              *pattern
	minLength, maxLength *float64
	minValue, maxValue   *float64
}

// maxParameterValue is the most bytes of a parameter's value.
const maxParameterValue = 4096

// Types that AWS looks values of up in.
var (
	plainTypes   = []string{"String", "Number", "CommaDelimitedList", "List<Number>", "List<String>"}
	resourceType = regexp.MustCompile(`^(List<)?(AWS::EC2::AvailabilityZone::Name|AWS::EC2::Image::Id|AWS::EC2::Instance::Id|` +
		`AWS::EC2::KeyPair::KeyName|AWS::EC2::SecurityGroup::GroupName|AWS::EC2::SecurityGroup::Id|AWS::EC2::Subnet::Id|` +
		`AWS::EC2::Volume::Id|AWS::EC2::VPC::Id|AWS::Route53::HostedZone::Id|AWS::SSM::Parameter::Name)(>)?$`)
	storedType = regexp.MustCompile(`^AWS::SSM::Parameter::Value<(.+)>$`)
)

// Stored returns the type of the value if the parameter's is the name of an SSM parameter that has it, or "".
func (p *Parameter) Stored() string {
	if m := storedType.FindStringSubmatch(p.Type); m != nil {
		return m[1]
	}
	return ""
}

// Element returns the parameter's type, or that of the elements of its list, and whether it is a list.
func (p *Parameter) Element() (element string, isList bool) {
	element = cmp.Or(p.Stored(), p.Type)
	if element == "CommaDelimitedList" {
		return "String", true
	}
	if inner, found := strings.CutPrefix(element, "List<"); found {
		return strings.TrimSuffix(inner, ">"), true
	}
	return element, false
}

func knownType(name string) bool {
	if m := storedType.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	if m := resourceType.FindStringSubmatch(name); m != nil {
		return (m[1] == "") == (m[3] == "")
	}
	return slices.Contains(plainTypes, name)
}

func (t *Template) readParameters(v *Value) error {
	if len(v.Fields) > maxParameters {
		return malformed("Number of parameters, %d, is greater than maximum allowed, %d", len(v.Fields), maxParameters)
	}
	t.Parameters, t.parameters = make([]Parameter, len(v.Fields)), map[string]*Parameter{}
	trying := maxTrying
	for i, f := range v.Fields {
		if !isAlphanumeric(f.Name) {
			return malformed("Parameter name %s is non alphanumeric.", f.Name)
		}
		if len(f.Name) > maxName {
			return malformed("Parameter name %s is longer than %d characters.", f.Name, maxName)
		}
		if f.Value.Kind != Object {
			return malformed("Any Parameters member must be an object.")
		}
		if err := t.Parameters[i].read(f.Name, f.Value, &trying); err != nil {
			return err
		}
		t.parameters[f.Name] = &t.Parameters[i]
	}
	return nil
}

// read reads a parameter's declaration. What trying is, pattern.problem tells.
func (p *Parameter) read(name string, v *Value, trying *int) error {
	p.Name = name
	for _, f := range v.Fields {
		if err := p.member(f.Name, f.Value); err != nil {
			return err
		}
	}
	switch {
	case p.Type == "":
		return malformed("Every Parameters object must contain a Type member.")
	case !knownType(p.Type):
		return malformed("Unrecognized parameter type: %s", p.Type)
	}
	if p.Default == nil || p.Stored() != "" {
		return nil
	}
	return p.check(*p.Default, trying)
}

// member reads one member of a declaration.
func (p *Parameter) member(name string, v *Value) (err error) {
	if name == "AllowedValues" {
		return p.readAllowed(v)
	}
	if !v.isScalar() {
		return malformed("Every %s member must be a string.", name)
	}
	switch name {
	case "Type":
		p.Type = v.Text
	case "Default":
		p.Default = &v.Text
	case "NoEcho":
		p.NoEcho = strings.EqualFold(v.Text, "true")
	case "Description":
		p.Description = v.Text
	case "ConstraintDescription":
		p.ConstraintDescription = v.Text
	case "AllowedPattern":
		compiled, err := compile(v.Text)
		if err != nil {
			return malformed("Parameter '%s' AllowedPattern must be a valid regular expression.", p.Name)
		}
		p.AllowedPattern, p.pattern = v.Text, &compiled
	case "MinLength":
		p.minLength, err = p.bound(name, v)
	case "MaxLength":
		p.maxLength, err = p.bound(name, v)
	case "MinValue":
		p.minValue, err = p.bound(name, v)
	case "MaxValue":
		p.maxValue, err = p.bound(name, v)
	default:
		err = fail("Invalid template parameter property '%s'", name)
	}
	return err
}

func (p *Parameter) readAllowed(v *Value) error {
	if v.Kind != List {
		return malformed("AllowedValues must be a list of strings.")
	}
	for _, item := range v.Items {
		if !item.isScalar() {
			return malformed("Every AllowedValues value must be a string.")
		}
		p.AllowedValues = append(p.AllowedValues, item.Text)
	}
	return nil
}

// bound reads a bound of lengths or values, which templates also write as a string.
func (p *Parameter) bound(name string, v *Value) (*float64, error) {
	n, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || math.IsNaN(n) {
		return nil, malformed("Parameter '%s' %s must be a number", p.Name, name)
	}
	return &n, nil
}

// Values checks the values that are given to parameters, adds the defaults, and returns them all: strings, and lists of strings. Of a
// parameter that is Stored it returns what is given, which is the name that the value is to be looked up by.
func (t *Template) Values(given map[string]string) (map[string]any, error) {
	return t.ValuesBut(given, nil)
}

// ValuesBut is Values for parameters of which some are given values that aren't known yet.
func (t *Template) ValuesBut(given map[string]string, unknown []string) (map[string]any, error) {
	var strange, missing []string
	for _, name := range slices.AppendSeq(slices.Clone(unknown), maps.Keys(given)) {
		if t.parameters[name] == nil {
			strange = append(strange, name)
		}
	}
	if slices.Sort(strange); len(strange) > 0 {
		return nil, fail("Parameters: %s do not exist in the template", list(strange))
	}
	values, trying := map[string]any{}, maxTrying
	for i := range t.Parameters {
		p := &t.Parameters[i]
		value, there := given[p.Name]
		switch {
		case slices.Contains(unknown, p.Name):
			values[p.Name] = Unknown{}
			continue
		case there:
		case p.Default != nil:
			value = *p.Default
		default:
			missing = append(missing, p.Name)
			continue
		}
		if p.Stored() != "" {
			values[p.Name] = value
			continue
		}
		if err := p.check(value, &trying); err != nil {
			return nil, err
		}
		values[p.Name] = p.Typed(value)
	}
	if len(missing) > 0 {
		return nil, fail("Parameters: %s must have values", list(missing))
	}
	return values, nil
}

// Typed returns a value as references see it: a string, or a list of them.
func (p *Parameter) Typed(value string) any {
	if _, isList := p.Element(); !isList {
		return value
	}
	items := []any{}
	for _, item := range elements(value) {
		items = append(items, item)
	}
	return items
}

// elements splits a list's value. An empty one has no elements.
func elements(value string) []string {
	if value == "" {
		return nil
	}
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// check checks a value against the parameter's constraints.
func (p *Parameter) check(value string, trying *int) error {
	if len(value) > maxParameterValue {
		return fail("Parameter '%s' must not be longer than %d bytes", p.Name, maxParameterValue)
	}
	element, isList := p.Element()
	items := []string{value}
	if isList {
		items = elements(value)
	}
	for _, item := range items {
		problem := p.problem(element, item, trying)
		switch {
		case problem == "":
		case p.ConstraintDescription != "":
			return fail("Parameter %s failed to satisfy constraint: %s", p.Name, p.ConstraintDescription)
		default:
			return fail("Parameter '%s' %s", p.Name, problem)
		}
	}
	return nil
}

// problem says what is wrong with a value, or with an element of one.
func (p *Parameter) problem(element, value string, trying *int) string {
	if p.AllowedValues != nil && !slices.Contains(p.AllowedValues, value) {
		return "must be one of AllowedValues"
	}
	if element == "Number" {
		return p.numberProblem(value)
	}
	length := float64(utf8.RuneCountInString(value))
	switch {
	case p.minLength != nil && length < *p.minLength:
		return "must contain at least " + number(*p.minLength) + " characters"
	case p.maxLength != nil && length > *p.maxLength:
		return "must contain at most " + number(*p.maxLength) + " characters"
	case p.pattern == nil:
		return ""
	}
	return p.pattern.problem(p.AllowedPattern, value, trying)
}

func (p *Parameter) numberProblem(value string) string {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return "must be a number."
	case p.minValue != nil && n < *p.minValue:
		return "must be a number not less than " + number(*p.minValue)
	case p.maxValue != nil && n > *p.maxValue:
		return "must be a number not greater than " + number(*p.maxValue)
	}
	return ""
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
