package cloudformation

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// withValues returns a change with the values of what changes, each in a detail of its own, or without any. See IncludePropertyValues of
// API_DescribeChangeSet.
func withValues(c types.Change, asked bool) types.Change {
	r := *c.ResourceChange
	c.ResourceChange = &r
	if !asked {
		r.BeforeContext, r.AfterContext = nil, nil
		return c
	}
	before, after := propertiesIn(r.BeforeContext), propertiesIn(r.AfterContext)
	details := []types.ResourceChangeDetail{}
	for _, d := range r.Details {
		name := aws.ToString(d.Target.Name)
		if d.Target.Attribute == types.ResourceAttributeTags {
			name = "Tags"
		}
		if d.ChangeSource == types.ChangeSourceAutomatic || name == "" {
			details = append(details, d)
			continue
		}
		list := differences("/Properties/"+name, before[name], after[name])
		if len(list) == 0 { // the values are concealed, or the same as far as they're known
			list = []types.ResourceTargetDefinition{{Path: aws.String("/Properties/" + name), AttributeChangeType: types.AttributeChangeTypeModify}}
		}
		for _, target := range list {
			target.Attribute, target.Name, target.RequiresRecreation = d.Target.Attribute, d.Target.Name, d.Target.RequiresRecreation
			one := d
			one.Target = &target
			details = append(details, one)
		}
	}
	r.Details = details
	return c
}

// propertiesIn returns the properties that a context shows.
func propertiesIn(context *string) map[string]any {
	var shown struct{ Properties map[string]any }
	if context == nil || json.Unmarshal([]byte(*context), &shown) != nil {
		return nil
	}
	return shown.Properties
}

// differences lists where two values differ: nil stands for what isn't there.
func differences(path string, before, after any) (list []types.ResourceTargetDefinition) {
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil:
		return []types.ResourceTargetDefinition{{Path: &path, AfterValue: valueText(after), AttributeChangeType: types.AttributeChangeTypeAdd}}
	case after == nil:
		return []types.ResourceTargetDefinition{{Path: &path, BeforeValue: valueText(before), AttributeChangeType: types.AttributeChangeTypeRemove}}
	}
	if a, isObject := before.(map[string]any); isObject {
		if b, isObject := after.(map[string]any); isObject {
			for _, name := range slices.Sorted(maps.Keys(mergedKeys(a, b))) {
				list = append(list, differences(path+"/"+name, a[name], b[name])...)
			}
			return list
		}
	}
	if a, isList := before.([]any); isList {
		if b, isList := after.([]any); isList {
			for i := range max(len(a), len(b)) {
				list = append(list, differences(path+"/"+strconv.Itoa(i), itemAt(a, i), itemAt(b, i))...)
			}
			return list
		}
	}
	x, y := valueText(before), valueText(after)
	if *x == *y {
		return nil
	}
	return []types.ResourceTargetDefinition{{Path: &path, BeforeValue: x, AfterValue: y, AttributeChangeType: types.AttributeChangeTypeModify}}
}

func mergedKeys(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// itemAt returns an item of a list, or nil behind its end.
func itemAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// valueText writes a value: text as it is, and everything else as JSON.
func valueText(v any) *string {
	if text, isText := v.(string); isText {
		return &text
	}
	text, _ := json.Marshal(v) //nolint:errcheck // it was read from JSON
	return new(string(text))
}
