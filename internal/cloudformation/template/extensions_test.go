package template

import (
	"encoding/json"
	"strings"
	"testing"
)

const loops = "Transform: AWS::LanguageExtensions\nParameters: {L: {Type: CommaDelimitedList, Default: 'a,b-1'}, P: {Type: String, Default: p}}\n" +
	"Mappings: {M: {k: {v: found}}}\nConditions: {Is: !Equals [!Ref P, p]}\n"

func TestExtensions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Fn::ForEach::X: [N, [A, B], {'R${N}': {Type: T, Properties: {P: !Ref N, Q: !Sub 'q-${N}', R: !Sub '${N}-${P}', S: '${N}'}}}]", `{"RA":{"Type":"T","Properties":{"P":"A","Q":"q-A","R":{"Fn::Sub":"A-${P}"},"S":"A"}},"RB":{"Type":"T","Properties":{"P":"B","Q":"q-B","R":{"Fn::Sub":"B-${P}"},"S":"B"}}}`},
		{"Fn::ForEach::X: [N, !Ref L, {'R&{N}': {Type: T}}]", `{"Ra":{"Type":"T"},"Rb1":{"Type":"T"}}`},
		{"Fn::ForEach::X: [N, [a-1], {'R&{N}': {Type: T, Properties: {'K${N}': !Ref 'S&{N}', G: !GetAtt 'S&{N}.Arn', L: [{M: 'x-${N}-&{N}-${P}-${!N}'}], S: !Sub ['&{N}-${N}-${Own}', {Own: 'o-${N}'}], T: !Sub '&{N}-${!N}'}}, 'S&{N}': {Type: T}}]",
			`{"Ra1":{"Type":"T","Properties":{"Ka-1":{"Ref":"Sa1"},"G":{"Fn::GetAtt":["Sa1","Arn"]},"L":[{"M":"x-a-1-a1-${P}-${!N}"}],"S":{"Fn::Sub":["a1-a-1-${Own}",{"Own":"o-a-1"}]},"T":{"Fn::Sub":"a1-${!N}"}}},"Sa1":{"Type":"T"}}`},
		{"Fn::ForEach::X: [N, [A], {'Fn::ForEach::Y': [O, ['${N}B'], {'R${O}': {Type: T, Properties: {P: '${N}${O}'}}}]}]", `{"RAB":{"Type":"T","Properties":{"P":"AAB"}}}`},
		{"Fn::ForEach::X: [N, [A], {'Fn::ForEach::Y': [O, [B, C], {'R${N}${O}': {Type: T}}]}]", `{"RAB":{"Type":"T"},"RAC":{"Type":"T"}}`},
		{"R: {Type: T, Properties: {'Fn::ForEach::X': [N, [A], {'P${N}': !Ref N}]}}", `{"R":{"Type":"T","Properties":{"PA":"A"}}}`},
		{"R: {Type: T, Properties: {A: {'Fn::Length': [a, b]}, B: {'Fn::Length': !Ref L}, C: {'Fn::Length': !Split ['.', a.b.c]}}}", `{"R":{"Type":"T","Properties":{"A":2,"B":2,"C":3}}}`},
		{"R: {Type: T, Properties: {A: {'Fn::ToJsonString': {b: [1, !Ref P], a: true}}}}", `{"R":{"Type":"T","Properties":{"A":"{\"a\":true,\"b\":[1,\"p\"]}"}}}`},
		{"R: {Type: T, Properties: {A: {'Fn::FindInMap': [M, k, v, {DefaultValue: d}]}, B: {'Fn::FindInMap': [M, k, z, {DefaultValue: d}]}}}", `{"R":{"Type":"T","Properties":{"A":"found","B":"d"}}}`},
		{"R: {Type: T, DeletionPolicy: !If [Is, Retain, Delete], UpdateReplacePolicy: !FindInMap [M, k, z, {DefaultValue: Delete}]}", `{"R":{"Type":"T","DeletionPolicy":"Retain","UpdateReplacePolicy":"Delete"}}`},
	} {
		tree, err := expanded(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got, err := json.Marshal(tree.Processed.Get("Resources"))
		if err != nil || string(got) != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.text, got, err, c.want)
		}
	}
}

func expanded(resources string) (*Template, error) {
	return ParseFor([]byte(loops+"Resources:\n  "+resources+"\n"), Scope{}, func(t *Template) (map[string]any, error) { return t.Values(nil) })
}

func TestExtensionsRefuse(t *testing.T) {
	many := "[" + strings.Repeat("a,", 99) + "a]"
	bomb := "{'X${A}${B}${C}${D}': {Type: T}}"
	for _, v := range []string{"D", "C", "B"} {
		bomb = "{'Fn::ForEach::" + v + "': [" + v + ", " + many + ", " + bomb + "]}"
	}
	const prefix = "Transform AWS::LanguageExtensions failed with: "
	for _, c := range []struct{ text, want string }{
		{"Fn::ForEach::X: [N, [A]]", prefix + "Fn::ForEach layout is incorrect"},
		{"Fn::ForEach::X: [N, !Ref P, {'R${N}': {Type: T}}]", prefix + "Could not find a collection or could not be resolved for Fn::ForEach"},
		{"Fn::ForEach::X: [N, [A, B], {R: {Type: T}}]", prefix + "Duplicate key 'R' when merging keys to parent object in Fn::ForEach"},
		{"R: {Type: T, Properties: {A: {'Fn::Length': x}}}", prefix + "The Fn::Length value could not be resolved for properties"},
		{"Fn::ForEach::A: [A, " + many + ", {'Fn::ForEach::E': [E, " + many + ", {'Fn::ForEach::F': [F, " + many + ", {'Fn::ForEach::G': [G, " + many + ", {}]}]}]}]", "Template may not exceed 1048576 bytes in size."},
		{"Fn::ForEach::A: [A, " + strings.ReplaceAll(many, "a", "!Ref P") + ", " + bomb + "]", prefix + "Duplicate key 'Xpaaa' when merging keys to parent object in Fn::ForEach"},
	} {
		if _, err := expanded(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%.200s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}
