package template

import (
	"encoding/base64"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// functions are the functions that templates may call. Those of conditions are decide's.
var functions = map[string]bool{
	"Ref": true, "Fn::Base64": true, "Fn::Cidr": true, "Fn::FindInMap": true, "Fn::GetAZs": true, "Fn::GetAtt": true, "Fn::If": true,
	"Fn::ImportValue": true, "Fn::Join": true, "Fn::Select": true, "Fn::Split": true, "Fn::Sub": true,
	"Fn::And": true, "Fn::Equals": true, "Fn::Not": true, "Fn::Or": true,
}

// ruleFunctions are those that only rules may call.
var ruleFunctions = map[string]bool{
	"Fn::Contains": true, "Fn::EachMemberEquals": true, "Fn::EachMemberIn": true, "Fn::RefAll": true, "Fn::ValueOf": true,
	"Fn::ValueOfAll": true,
}

// Messages that several checks share.
const (
	joinNeeds = "every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined or a " +
		"function that returns a list of strings (such as Fn::GetAZs) to be joined."
	findNeeds = "every Fn::FindInMap object requires three parameters, the map name, map key and the attribute for return value"
	subNeeds  = "One or more Fn::Sub intrinsic functions don't specify expected arguments. Specify a string as first argument, and an " +
		"optional second argument to specify a mapping of values to replace in the string"
	subValue    = "every value of the context object of every Fn::Sub object must be a string or a function that returns a string"
	splitNeeds  = "every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string to be split or a function that returns a string to be split."
	selectNeeds = "Fn::Select requires a list argument with two elements: an integer index and a list"
	cidrNeeds   = "every Fn::Cidr object requires two or three parameters, an IP block, a count from 1 to 256 and the number of bits of each block"
)

// call evaluates a function. What depends on something unknown is unknown.
func (e *Evaluation) call(name string, argument *Value) (any, error) {
	switch name {
	case "Ref":
		return e.ref(argument.Text)
	case "Fn::GetAtt":
		return e.attribute(argument)
	case "Fn::If":
		return e.choose(argument)
	case "Fn::Join":
		return e.join(argument)
	case "Fn::Sub":
		return e.substitute(argument)
	case "Fn::Select":
		return e.pick(argument)
	case "Fn::Split":
		return e.split(argument)
	case "Fn::FindInMap":
		return e.find(argument)
	case "Fn::Cidr":
		return e.cidr(argument)
	case "Fn::GetAZs":
		return e.zones(argument)
	case "Fn::Base64":
		return e.base64(argument)
	case "Fn::ImportValue":
		return e.imported(argument)
	case "Fn::ToJsonString":
		return e.jsonString(argument)
	}
	return nil, wrong("%s is only allowed in the Conditions block of the template", name)
}

// known evaluates a value. isKnown is false for what isn't known yet.
func (e *Evaluation) known(v *Value) (got any, isKnown bool, err error) {
	got, err = e.value(v)
	_, unknown := got.(Unknown)
	return got, err == nil && !unknown, err
}

// text evaluates what must be a string.
func (e *Evaluation) text(v *Value, needs string) (text string, isKnown bool, err error) {
	got, isKnown, err := e.known(v)
	if err != nil || !isKnown {
		return "", false, err
	}
	text, isText := Text(got)
	if !isText {
		return "", false, wrong("%s", needs)
	}
	return text, true, nil
}

// texts evaluates what must be a list of strings.
func (e *Evaluation) texts(v *Value, needs string) (texts []string, isKnown bool, err error) {
	got, isKnown, err := e.known(v)
	if err != nil || !isKnown {
		return nil, false, err
	}
	items, isList := got.([]any)
	if !isList {
		return nil, false, wrong("%s", needs)
	}
	for _, item := range items {
		text, isText := Text(item)
		if _, unknown := item.(Unknown); unknown {
			isKnown = false
		} else if !isText {
			return nil, false, wrong("%s", needs)
		}
		texts = append(texts, text)
	}
	return texts, isKnown, nil
}

func (e *Evaluation) attribute(argument *Value) (any, error) {
	resource := argument.Items[0].Text // Parse has checked this
	name, isKnown, err := e.text(argument.Items[1], "every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute")
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	if err := e.exists(resource); err != nil {
		return nil, err
	}
	return e.scope.Attribute(resource, name)
}

func (e *Evaluation) choose(argument *Value) (any, error) {
	if len(argument.Items) != 3 {
		return nil, wrong("Fn::If requires a list argument with three elements")
	}
	if e.conditions[argument.Items[0].Text] {
		return e.value(argument.Items[1])
	}
	return e.value(argument.Items[2])
}

func (e *Evaluation) join(argument *Value) (any, error) {
	if len(argument.Items) != 2 || !argument.Items[0].isScalar() {
		return nil, wrong(joinNeeds)
	}
	items, isKnown, err := e.texts(argument.Items[1], joinNeeds)
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	delimiter := argument.Items[0].Text
	if err := e.spend(len(delimiter) * len(items)); err != nil {
		return nil, err
	}
	return strings.Join(items, delimiter), nil
}

// substitutionParts returns the text of Fn::Sub and its own variables, or nil.
func substitutionParts(argument *Value) (text string, own *Value, err error) {
	if argument.isScalar() {
		return argument.Text, nil, nil
	}
	items := argument.Items
	if len(items) != 2 || !items[0].isScalar() || items[1].Kind != Object {
		return "", nil, wrong(subNeeds)
	}
	for _, f := range items[1].Fields {
		if !subKey.MatchString(f.Name) {
			return "", nil, wrong("every key of the context object of every Fn::Sub object must contain only alphanumeric characters and underscores")
		}
	}
	return items[0].Text, items[1], nil
}

var subKey = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

func (e *Evaluation) substitute(argument *Value) (any, error) {
	text, own, err := substitutionParts(argument)
	if err != nil {
		return nil, err
	}
	allKnown := true
	out := variable.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		if err != nil {
			return ""
		}
		if literal, isLiteral := strings.CutPrefix(name, "!"); isLiteral {
			return "${" + literal + "}"
		}
		value, isKnown, wrong := e.text(subVariable(name, own), subValue)
		err, allKnown = wrong, allKnown && isKnown
		return value
	})
	if err != nil || !allKnown {
		return Unknown{}, err
	}
	return out, nil
}

// subVariable returns what a variable of Fn::Sub stands for.
func subVariable(name string, own *Value) *Value {
	if v := own.Get(name); v != nil {
		return v
	}
	v := &Value{Kind: String, Text: name}
	if pair := dotted(v); pair != v {
		return &Value{Kind: Object, Fields: []Field{{"Fn::GetAtt", pair}}}
	}
	return &Value{Kind: Object, Fields: []Field{{"Ref", v}}}
}

func (e *Evaluation) pick(argument *Value) (any, error) {
	if len(argument.Items) != 2 {
		return nil, wrong(selectNeeds)
	}
	index, isKnown, err := e.text(argument.Items[0], selectNeeds)
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	got, isKnown, err := e.known(argument.Items[1])
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(index))
	items, isList := got.([]any)
	if err != nil || !isList {
		return nil, wrong(selectNeeds)
	}
	switch there := n >= 0 && n < len(items); {
	case !there && argument.Items[1].Kind == List:
		return nil, wrong(selectNeeds)
	case !there:
		return nil, wrong("Fn::Select cannot select nonexistent value at index %d", n)
	}
	return items[n], nil
}

func (e *Evaluation) split(argument *Value) (any, error) {
	if len(argument.Items) != 2 || !argument.Items[0].isScalar() || argument.Items[0].Text == "" {
		return nil, wrong(splitNeeds)
	}
	text, isKnown, err := e.text(argument.Items[1], splitNeeds)
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	out := []any{}
	for _, part := range strings.Split(text, argument.Items[0].Text) {
		out = append(out, part)
	}
	return out, nil
}

func (e *Evaluation) find(argument *Value) (any, error) {
	if len(argument.Items) != 3 {
		return nil, wrong(findNeeds)
	}
	var path [3]string
	for i, item := range argument.Items {
		text, isKnown, err := e.text(item, findNeeds)
		if err != nil {
			return nil, err
		}
		if !isKnown {
			return nil, wrong(findNeeds)
		}
		path[i] = text
	}
	if e.template.Mappings[path[0]] == nil {
		return nil, wrong("Mapping named '%s' is not present in the 'Mappings' section of template.", path[0])
	}
	v := e.template.Mappings[path[0]][path[1]][path[2]]
	if v == nil {
		return nil, wrong("Unable to get mapping for %s", strings.Join(path[:], "::"))
	}
	return e.value(v)
}

func (e *Evaluation) zones(argument *Value) (any, error) {
	region, isKnown, err := e.text(argument, "every Fn::GetAZs object must have a String-typed value.")
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	if region == "" {
		region = e.scope.Region
	}
	out := []any{}
	for _, zone := range e.scope.Zones(region) {
		out = append(out, zone)
	}
	return out, nil
}

func (e *Evaluation) base64(argument *Value) (any, error) {
	text, isKnown, err := e.text(argument, "every Fn::Base64 object must have a String-typed value.")
	if err != nil || !isKnown {
		return Unknown{}, err
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

func (e *Evaluation) imported(argument *Value) (any, error) {
	name, isKnown, err := e.text(argument, "the attribute in Fn::ImportValue must be a string or a function that returns a string")
	if err != nil {
		return nil, err
	}
	if !isKnown {
		return nil, wrong("the attribute in Fn::ImportValue must not depend on any resources, imported values, or Fn::GetAZs")
	}
	return e.scope.Import(name)
}

func (e *Evaluation) jsonString(argument *Value) (any, error) {
	got, err := e.value(argument)
	if err != nil || HasUnknown(got) {
		return Unknown{}, err
	}
	return jsonOf(got)
}

// maxBlocks is how many blocks Fn::Cidr makes at most.
const maxBlocks = 256

func (e *Evaluation) cidr(argument *Value) (any, error) {
	if n := len(argument.Items); n != 2 && n != 3 {
		return nil, wrong(cidrNeeds)
	}
	var arguments [3]string
	for i, item := range argument.Items {
		text, isKnown, err := e.text(item, cidrNeeds)
		if err != nil || !isKnown {
			return Unknown{}, err
		}
		arguments[i] = text
	}
	block, err := netip.ParsePrefix(arguments[0])
	if err != nil {
		return nil, wrong("Fn::Cidr: %s is not a valid CIDR block", arguments[0])
	}
	count, err := strconv.Atoi(arguments[1])
	if err != nil || count < 1 || count > maxBlocks {
		return nil, wrong(cidrNeeds)
	}
	bits := 8
	if arguments[2] != "" {
		if bits, err = strconv.Atoi(arguments[2]); err != nil {
			return nil, wrong(cidrNeeds)
		}
	}
	return blocks(block.Masked(), count, bits)
}

// blocks returns the first blocks of a size inside a block of addresses. bits is how many bits of each are for hosts.
func blocks(block netip.Prefix, count, bits int) (any, error) {
	length := block.Addr().BitLen() - bits
	room := length - block.Bits()
	if bits < 1 || room < 0 || room < 8 && count > 1<<room {
		return nil, wrong("Fn::Cidr cannot make %d blocks of %d bits in %s", count, bits, block)
	}
	out := make([]any, 0, count)
	next := block.Addr()
	for range count {
		out = append(out, netip.PrefixFrom(next, length).String())
		next = plus(next, bits)
	}
	return out, nil
}

// plus adds two to the power of bits to an address.
func plus(address netip.Addr, bits int) netip.Addr {
	b := address.AsSlice()
	carry := uint16(1) << (bits % 8)
	for i := len(b) - 1 - bits/8; i >= 0 && carry > 0; i-- {
		sum := uint16(b[i]) + carry
		b[i], carry = byte(sum), sum>>8
	}
	next, _ := netip.AddrFromSlice(b)
	return next
}
