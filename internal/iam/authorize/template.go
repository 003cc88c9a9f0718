package authorize

import "strings"

// template makes texts of an input's members: of ARNs, or of values.
type template struct {
	parts []part
	// verbatim is whether members' values stay as they are. Otherwise they may be ARNs: that of the last name is the whole text, and of
	// others the name counts.
	verbatim bool
}

// part is a literal text, or a member in braces.
type part struct {
	text   string
	member string // its path; empty for a text
	or     string // what stands for a member that isn't given
}

// unknown stands for a member that isn't given: only a policy that allows all resources of the kind allows it.
const unknown = "*"

// template parses a text such as service/{Cluster|default}/{Service}, which follows the prefix of the ARNs of an action's or a key's
// service. A text that begins with arn: has no such prefix, nor has one that is a member alone.
func (t *Table) template(action, text string) (parsed template) {
	alone := text[0] == '{' && strings.IndexByte(text, '}') == len(text)-1
	parsed.verbatim = alone || strings.HasPrefix(text, "arn:")
	if !parsed.verbatim && text != "*" {
		parsed.parts = append(parsed.parts, part{text: t.prefix(action)})
	}
	text = strings.NewReplacer("$ACCOUNT", t.account, "$REGION", t.region).Replace(text)
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if before != "" {
			parsed.parts = append(parsed.parts, part{text: before})
		}
		if !found {
			return parsed
		}
		name, after, _ := strings.Cut(rest, "}")
		member, or, given := strings.Cut(name, "|")
		if !given {
			or = unknown
		}
		parsed.parts = append(parsed.parts, part{member: member, or: or})
		text = after
	}
	return parsed
}

// prefix is what the ARNs of an action's service begin with.
func (t *Table) prefix(action string) string {
	service, _, _ := strings.Cut(action, ":")
	if service == "iam" {
		return "arn:aws:iam::" + t.account + ":"
	}
	return "arn:aws:" + service + ":" + t.region + ":" + t.account + ":"
}

// fill returns the texts that the template makes of an input: one for each value of a member that is a list.
func (t template) fill(in input) []string {
	made := []string{""}
	for i, p := range t.parts {
		if p.member == "" {
			made = joined(made, []string{p.text})
			continue
		}
		values := in.values(p.member)
		if len(values) == 0 {
			values = []string{in.or(p)}
		}
		if t.verbatim {
			made = joined(made, values)
			continue
		}
		var whole, names []string
		for _, v := range values {
			if i == len(t.parts)-1 && isARN(v) {
				whole = append(whole, v)
			} else {
				names = append(names, nameIn(v))
			}
		}
		made = append(joined(made, names), whole...)
	}
	return made
}

// joined returns each text with each end.
func joined(texts, ends []string) (made []string) {
	for _, end := range ends {
		for _, text := range texts {
			made = append(made, text+end)
		}
	}
	return made
}

func isARN(text string) bool { return strings.HasPrefix(text, "arn:") && strings.Count(text, ":") >= 5 }

// nameIn returns the name in an ARN. Other texts are names.
func nameIn(value string) string {
	if !isARN(value) {
		return value
	}
	resource := strings.SplitN(value, ":", 6)[5]
	if i := strings.IndexAny(resource, ":/"); i >= 0 && resource[i] == ':' {
		return strings.TrimSuffix(resource[i+1:], ":*")
	}
	return afterSlash(resource)
}
