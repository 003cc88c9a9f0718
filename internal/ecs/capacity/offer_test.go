package capacity

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"
)

// attributes makes attributes of "name" and "name=value".
func attributes(texts ...string) []types.Attribute {
	out := []types.Attribute{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		a := types.Attribute{Name: &name}
		if ok {
			a.Value = &value
		}
		out = append(out, a)
	}
	return out
}

func TestRefusal(t *testing.T) {
	small := Kind{Size: Size{2048, 4096, 1}}
	large := Kind{Size: Size{16_384, 65_536, 0}}
	seen := func(k Kind, texts ...string) Kind {
		k.Seen = attributes(texts...)
		return k
	}
	typed := Kind{Size: Size{2048, 4096, 1}, Type: "g4dn.xlarge", Zones: []string{"a", "b"}}
	of := func(expression string) Task { return NewTask(Size{1, 1, 0}, nil, []string{expression}) }
	for _, c := range []struct {
		name           string
		kinds          []Kind
		task           Task
		reason, detail string
		trial          bool
	}{
		{"nothing known", nil, Task{Size: Size{1, 1, 9}, Attributes: attributes("efs")}, "", "", false},
		{"it fits", []Kind{small}, Task{Size: Size{2048, 4096, 1}, Attributes: nil}, "", "", false},
		{
			"too many GPUs", []Kind{small, large}, Task{Size: Size{1, 1, 4}, Attributes: nil},
			"RESOURCE:GPU", "The task needs 4 GPUs, and an instance of its capacity provider has at most 1.", false,
		},
		{
			"too much CPU", []Kind{small}, Task{Size: Size{4096, 1, 0}, Attributes: nil},
			"RESOURCE:CPU", "The task needs 4096 CPU units, and an instance of its capacity provider has at most 2048.", false,
		},
		{
			"too much memory", []Kind{small}, Task{Size: Size{1, 4097, 0}, Attributes: nil},
			"RESOURCE:MEMORY", "The task needs 4097 MiB of memory, and an instance of its capacity provider has at most 4096.", false,
		},
		{
			"no type has both", []Kind{small, large}, Task{Size: Size{4096, 1, 1}, Attributes: nil},
			"RESOURCE:*", "No instance type of the task's capacity provider has enough GPUs, CPU and memory together.", false,
		},
		{"another type has it", []Kind{small, large}, Task{Size: Size{4096, 1, 0}, Attributes: nil}, "", "", false},
		{"ordinary attributes", []Kind{small}, Task{Size: Size{1, 1, 0}, Attributes: attributes("ecs.capability.task-eni", "ecs.os-type=linux")}, "", "", false},
		{"only an instance can tell", []Kind{small}, Task{Size: Size{1, 1, 0}, Attributes: attributes("ecs.capability.efs")}, "", "", true},
		{
			"instances lack it", []Kind{seen(small, "a")}, Task{Size: Size{1, 1, 0}, Attributes: attributes("a", "b", "c=d")},
			"ATTRIBUTE", "Missing attributes: b, c=d.", true,
		},
		{"instances have it", []Kind{seen(small, "b", "c=d")}, Task{Size: Size{1, 1, 0}, Attributes: attributes("b", "c=d")}, "", "", false},
		{"another value", []Kind{seen(small, "c=e")}, Task{Size: Size{1, 1, 0}, Attributes: attributes("c=d")}, "ATTRIBUTE", "Missing attribute: c=d.", true},
		{"one type lacks it, of another nobody knows", []Kind{seen(small), large}, Task{Size: Size{1, 1, 0}, Attributes: attributes("b")}, "", "", true},
		{
			"the type with room lacks it", []Kind{seen(small), seen(large, "b")}, Task{Size: Size{1, 1, 1}, Attributes: attributes("b")},
			"ATTRIBUTE", "Missing attribute: b.", true,
		},
		{
			"another instance type", []Kind{typed}, of("attribute:ecs.instance-type == p5.48xlarge"),
			UnmetConstraint, "No instance of its capacity provider meets attribute:ecs.instance-type == p5.48xlarge.", false,
		},
		{"its instance type", []Kind{typed}, of("attribute:ecs.instance-type =~ g4dn.*"), "", "", false},
		{"one of its zones", []Kind{typed}, of("attribute:ecs.availability-zone == b"), "", "", true},
		{
			"no zone of its", []Kind{typed}, of("attribute:ecs.availability-zone == c"),
			UnmetConstraint, "No instance of its capacity provider meets attribute:ecs.availability-zone == c.", false,
		},
		{"an attribute that only an instance can tell", []Kind{typed}, of("attribute:stack == prod"), "", "", true},
		{
			"instances have another value", []Kind{seen(typed, "stack=test")}, of("attribute:stack == prod"),
			UnmetConstraint, "No instance of its capacity provider meets attribute:stack == prod.", false,
		},
		{"instances have that value", []Kind{seen(typed, "stack=prod")}, of("attribute:stack == prod"), "", "", false},
		{
			"the subnet of another zone", []Kind{seen(typed, "ecs.availability-zone=a", "ecs.subnet-id=subnet-1")},
			of("attribute:ecs.subnet-id == subnet-2"), "", "", false,
		},
		{
			"another subnet of its only zone", []Kind{seen(Kind{Size: typed.Size, Zones: []string{"a"}}, "ecs.availability-zone=a", "ecs.subnet-id=subnet-1")},
			of("attribute:ecs.subnet-id == subnet-2"),
			UnmetConstraint, "No instance of its capacity provider meets attribute:ecs.subnet-id == subnet-2.", false,
		},
		{"beside other tasks", []Kind{seen(typed)}, of("task:group == databases"), "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reason, detail := Refusal(c.kinds, c.task)
			if reason != c.reason || detail != c.detail {
				t.Errorf("got %q, %q, want %q, %q", reason, detail, c.reason, c.detail)
			}
			if trial := IsTrial(c.kinds, c.task); trial != c.trial {
				t.Errorf("a trial: %v, want %v", trial, c.trial)
			}
		})
	}
}

// TestRefusalIsOfAll: a task is refused exactly if no kind takes it or ever could, and the reason says why.
func TestRefusalIsOfAll(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b=1", "b=2", "c"}), 0, 3, rapid.ID[string])
		task := Task{Size: size(r, "task", 4), Attributes: attributes(some.Draw(r, "needs")...)}
		memberOf := rapid.SliceOfN(rapid.SampledFrom([]string{"attribute:a exists", "attribute:b == 1", "task:group == g"}), 0, 2).Draw(r, "constraints")
		task = NewTask(task.Size, task.Attributes, memberOf)
		var kinds []Kind
		taken := false
		for range rapid.IntRange(1, 4).Draw(r, "kinds") {
			k := Kind{Size: size(r, "kind", 4)}
			if rapid.Bool().Draw(r, "seen") {
				k.Seen = attributes(some.Draw(r, "has")...)
			}
			kinds = append(kinds, k)
			if k.Takes(task) && k.unmet(task.MemberOf, false) != "" {
				r.Fatal("an instance takes it at once, and could never")
			}
			taken = taken || k.holds(task.Size) && len(k.lacks(task)) == 0 && k.unmet(task.MemberOf, false) == ""
		}
		reason, detail := Refusal(kinds, task)
		if taken != (reason == "") || (reason == "") != (detail == "") {
			r.Fatalf("taken: %v, reason %q, %q", taken, reason, detail)
		}
	})
}

func TestTrial(t *testing.T) {
	for _, c := range []struct {
		m    Managed
		want int
	}{
		{Managed{Trial: true}, 1},
		{Managed{Trial: true, Registered: 3, Busy: 2}, 4},
		{Managed{Trial: true, MinStep: 5, MaxStep: 9}, 1},
		{Managed{Trial: true, Waiting: tasks(3, Size{1024, 1024, 1}), Instance: g4dn, MaxStep: 9}, 3},
	} {
		if got := c.m.Needed(); got != c.want {
			t.Errorf("%+v needs %d, want %d", c.m, got, c.want)
		}
	}
}
