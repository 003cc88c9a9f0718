package template

import "slices"

// CheckRules checks the template's rules: what they assert of the values of parameters. The error says what the rule's author wrote.
func (t *Template) CheckRules(parameters map[string]any) error {
	e := newEvaluation(t, Scope{Parameters: parameters})
	for _, rule := range t.Rules {
		if when := rule.Value.Get("RuleCondition"); when != nil {
			if applies, err := e.holds(when); err != nil {
				return err
			} else if !applies {
				continue
			}
		}
		for _, assertion := range rule.Value.Get("Assertions").Items {
			holds, err := e.holds(assertion.Get("Assert"))
			if err != nil {
				return err
			}
			if !holds {
				said := "the assertion does not hold"
				if d := assertion.Get("AssertDescription"); d.isScalar() {
					said = d.Text
				}
				return fail("Template validation error: Rule %s: %s", rule.Name, said)
			}
		}
	}
	return nil
}

// holds evaluates what a rule asserts, or the condition on which it applies.
func (e *Evaluation) holds(v *Value) (bool, error) {
	name, argument := v.Call()
	switch name {
	case "Fn::Not", "Fn::And", "Fn::Or":
		return logic(name, argument, e.holds)
	case "Fn::Contains", "Fn::EachMemberIn", "Fn::EachMemberEquals":
		return e.members(name, argument)
	case "Fn::Equals":
		return e.equals(argument)
	}
	return false, wrong("%s is not supported in the Rules block of the template", name)
}

// members evaluates the functions that ask about the members of lists.
func (e *Evaluation) members(name string, argument *Value) (bool, error) {
	needs := name + " requires a list argument with two elements"
	if len(argument.Items) != 2 {
		return false, wrong("%s", needs)
	}
	if name == "Fn::EachMemberEquals" {
		list, _, err := e.texts(argument.Items[0], needs)
		if err != nil {
			return false, err
		}
		want, _, err := e.text(argument.Items[1], needs)
		return !slices.ContainsFunc(list, func(s string) bool { return s != want }), err
	}
	first, second := argument.Items[0], argument.Items[1]
	if name == "Fn::EachMemberIn" {
		list, _, err := e.texts(first, needs)
		if err != nil {
			return false, err
		}
		in, _, err := e.texts(second, needs)
		return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(in, s) }), err
	}
	list, _, err := e.texts(first, needs)
	if err != nil {
		return false, err
	}
	want, _, err := e.text(second, needs)
	return slices.Contains(list, want), err
}
