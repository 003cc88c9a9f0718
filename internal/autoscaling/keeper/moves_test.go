package keeper

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// settle steps until instances have finished launching and leaving.
func settle(t testing.TB, store *state.Store, l *Loop) {
	t.Helper()
	for range 4 {
		mustStep(t, l)
		runMachines(t, store)
	}
	mustStep(t, l)
}

// TestLifecycleEvents: the bus hears of each instance that waits for a hook, with and without a target.
func TestLifecycleEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer func() { store.Close() }() //nolint:errcheck // the test is over
		told := statetest.Listen(t, store, "aws.autoscaling")
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.DesiredCapacity = aws.Int32(1)
			for _, transition := range []string{launching, terminating} {
				g.Hooks = append(g.Hooks, types.LifecycleHook{
					LifecycleHookName:    new("at " + transition),
					LifecycleTransition:  &transition,
					DefaultResult:        aws.String("CONTINUE"),
					HeartbeatTimeout:     aws.Int32(60),
					NotificationMetadata: aws.String("blue"),
				})
			}
		})
		settle(t, store, l)
		i := slices.Collect(store.View().Instances.By(state.InstancesByGroup, "g"))[0]
		tokens := []string{i.Member.Waits.Token}
		time.Sleep(time.Minute)
		settle(t, store, l)
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		settle(t, store, l)
		tokens = append(tokens, slices.Collect(store.View().Instances.By(state.InstancesByGroup, "g"))[0].Member.Waits.Token)
		var waits []state.Event
		for _, e := range *told {
			if strings.HasSuffix(e.DetailType, "Lifecycle Action") {
				waits = append(waits, e)
			}
		}
		if len(waits) != 2 {
			t.Fatalf("%d events: %+v", len(waits), waits)
		}
		for n, want := range []struct{ detailType, transition, way string }{
			{"EC2 Instance-launch Lifecycle Action", launching, `"Origin":"EC2","Destination":"AutoScalingGroup"`},
			{"EC2 Instance-terminate Lifecycle Action", terminating, `"Origin":"AutoScalingGroup","Destination":"EC2"`},
		} {
			detail := `{"LifecycleActionToken":"` + tokens[n] + `","AutoScalingGroupName":"g","LifecycleHookName":"at ` + want.transition +
				`","EC2InstanceId":"` + *i.InstanceId + `","LifecycleTransition":"` + want.transition + `","NotificationMetadata":"blue",` + want.way + `}`
			if got := waits[n]; got.DetailType != want.detailType || string(got.Detail.(json.RawMessage)) != detail || !slices.Equal(got.Resources, []string{"arn:g"}) {
				t.Errorf("%s %s %s, want %s %s", got.DetailType, got.Detail, got.Resources, want.detailType, detail)
			}
		}
	})
}

// TestOwed: a hook's target is owed one notice per waiting instance, for as long as the hook waits.
func TestOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer func() { store.Close() }() //nolint:errcheck // the test is over
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.DesiredCapacity = aws.Int32(1)
			g.AutoScalingGroupARN = aws.String("arn:aws:autoscaling:us-east-1:123456789012:autoScalingGroup:u:autoScalingGroupName/g")
			for _, transition := range []string{launching, terminating} {
				g.Hooks = append(g.Hooks, types.LifecycleHook{
					LifecycleHookName:     new("at " + transition),
					LifecycleTransition:   &transition,
					DefaultResult:         aws.String("CONTINUE"),
					HeartbeatTimeout:      aws.Int32(60),
					NotificationTargetARN: aws.String("arn:queue"),
					NotificationMetadata:  aws.String("blue"),
				})
			}
		})
		settle(t, store, l) // takes several steps
		i := slices.Collect(store.View().Instances.By(state.InstancesByGroup, "g"))[0]
		want := notice{
			LifecycleHookName:    "at " + launching,
			AccountID:            "123456789012",
			LifecycleTransition:  launching,
			AutoScalingGroupName: "g",
			Service:              "AWS Auto Scaling",
			EC2InstanceID:        *i.InstanceId,
			LifecycleActionToken: i.Member.Waits.Token,
			Origin:               "EC2",
			Destination:          "AutoScalingGroup",
		}
		owed := slices.Collect(store.View().Deliveries.All())
		if len(owed) != 1 || owed[0].Destination != "arn:queue" || !owed[0].Until.Equal(i.Member.Waits.Until) {
			t.Fatalf("owed is %+v", owed)
		}
		var got notice
		if err := json.Unmarshal([]byte(owed[0].Body), &got); err != nil || got.RequestID == "" || got.Time == "" ||
			*got.NotificationMetadata != "blue" {
			t.Errorf("the target is told %s, %v", owed[0].Body, err)
		}
		got.RequestID = ""
		got.Time = ""
		got.NotificationMetadata = nil
		if got != want {
			t.Errorf("the target is told %+v, not %+v", got, want)
		}

		time.Sleep(time.Minute)
		settle(t, store, l)
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		settle(t, store, l)
		owed = slices.Collect(store.View().Deliveries.All())
		if len(owed) != 2 || !strings.Contains(owed[1].Body, `"Origin":"AutoScalingGroup","Destination":"EC2"`) {
			t.Errorf("of the end the target is told %+v", owed)
		}
	})
}

// move sets the lifecycle state of the group's first instance, as the service does.
func move(t testing.TB, store *state.Store, to types.LifecycleState, desired int32) (id string) {
	t.Helper()
	put(t, store, func(tx *state.Tx) {
		i := slices.Collect(tx.Instances.By(state.InstancesByGroup, "g"))[0]
		id = *i.InstanceId
		row := i.Clone()
		row.Member.LifecycleState = to
		row.Member.InServiceAt = nil
		tx.Instances.Put(row)
	})
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &desired })
	return id
}

// TestStandby: an instance on standby stays, even if unhealthy, and doesn't count. A detached instance is left alone.
func TestStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		want := func(when string, w ...string) {
			t.Helper()
			settle(t, store, l)
			if got := states(store); !slices.Equal(got, w) {
				t.Errorf("%s: %v, want %v", when, got, w)
			}
		}
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		want("launched", "InService")
		one := move(t, store, types.LifecycleStateEnteringStandby, 0)
		want("on standby", "Standby")
		put(t, store, func(tx *state.Tx) {
			row := tx.Instances.Get(one).Clone()
			row.Member.Unhealthy = true
			tx.Instances.Put(row)
		})
		want("unwell on standby", "Standby")
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		want("one more", "InService", "Standby")
		if underWay(store.View(), store.View().AutoScalingGroups.Get("g")) {
			t.Error("an instance on standby holds simple scaling")
		}
		put(t, store, func(tx *state.Tx) {
			row := tx.Instances.Get(one).Clone()
			row.Member.LifecycleState = types.LifecycleStateDetaching
			row.Member.Unhealthy = false
			tx.Instances.Put(row)
		})
		want("detached", "InService")
		if i := store.View().Instances.Get(one); i.Member != nil || i.IsOver() {
			t.Errorf("the detached instance is %+v", i)
		}
		move(t, store, types.LifecycleStateEnteringStandby, 0)
		want("on standby again", "Standby")
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.Deleting = true })
		want("deleted")
		if store.View().AutoScalingGroups.Get("g") != nil {
			t.Error("the group still exists")
		}
	})
}

// startRefresh starts an instance refresh.
func startRefresh(t testing.TB, store *state.Store, p types.RefreshPreferences) {
	t.Helper()
	time.Sleep(time.Millisecond) // so that existing instances are older
	now := time.Now().UTC()
	put(t, store, func(tx *state.Tx) {
		tx.GroupRefreshes.Put(&state.GroupRefresh{Since: now, Of: int32(len(tx.ActiveMembers("g"))), InstanceRefresh: types.InstanceRefresh{
			InstanceRefreshId:    aws.String("r"),
			AutoScalingGroupName: aws.String("g"),
			Status:               types.InstanceRefreshStatusPending,
			StartTime:            &now,
			Preferences:          &p,
		}})
	})
}

func refreshOf(store *state.Store) *state.GroupRefresh { return store.View().GroupRefreshes.Get("r") }

// TestRefresh: a refresh replaces one instance at a time, and waits for each replacement to warm up.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(3) })
		settle(t, store, l)
		old := activeIDs(store)
		startRefresh(t, store, types.RefreshPreferences{
			MinHealthyPercentage: aws.Int32(90),
			MaxHealthyPercentage: aws.Int32(100),
			InstanceWarmup:       aws.Int32(60),
		})
		for n := range int32(3) {
			settle(t, store, l)
			left := slices.DeleteFunc(activeIDs(store), func(id string) bool { return !slices.Contains(old, id) })
			if r := refreshOf(store); len(left) != int(2-n) || *r.InstancesToUpdate != 2-n ||
				r.Status != types.InstanceRefreshStatusInProgress {
				t.Errorf("after %d minutes %v of %v are left: %+v", n, left, old, r)
			}
			if n := len(store.View().ActiveMembers("g")); n != 3 {
				t.Errorf("there are %d instances", n)
			}
			time.Sleep(time.Minute)
		}
		settle(t, store, l)
		if r := refreshOf(store); r.Status != types.InstanceRefreshStatusSuccessful || *r.PercentageComplete != 100 || r.EndTime == nil {
			t.Errorf("in the end the refresh is %+v", r)
		}
	})
}

// activeIDs returns the ids of the group's active instances.
func activeIDs(store *state.Store) (ids []string) {
	for _, i := range store.View().ActiveMembers("g") {
		ids = append(ids, *i.InstanceId)
	}
	return ids
}

// TestRefreshEnds: a refresh that can't go on fails after an hour, unless its preferences let it succeed.
func TestRefreshEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      types.RefreshPreferences
		given  func(*state.Instance)
		after  time.Duration
		status types.InstanceRefreshStatus
		says   string
		same   bool // the instance stays
	}{
		{
			name:   "protected, waits",
			given:  func(i *state.Instance) { i.Member.Protected = true },
			after:  time.Hour - time.Minute,
			status: "InProgress",
			same:   true,
		},
		{
			name:   "protected",
			given:  func(i *state.Instance) { i.Member.Protected = true },
			after:  time.Hour + time.Minute,
			status: "Failed",
			says:   "protected from scale in",
			same:   true,
		},
		{
			name:   "protected, ignored",
			p:      types.RefreshPreferences{ScaleInProtectedInstances: "Ignore"},
			given:  func(i *state.Instance) { i.Member.Protected = true },
			status: "Successful",
			same:   true,
		},
		{
			name:   "protected, refreshed",
			p:      types.RefreshPreferences{ScaleInProtectedInstances: "Refresh"},
			given:  func(i *state.Instance) { i.Member.Protected = true },
			status: "Successful",
		},
		{
			name:   "the same template",
			p:      types.RefreshPreferences{SkipMatching: aws.Bool(true)},
			given:  func(*state.Instance) {},
			status: "Successful",
			same:   true,
		},
		{
			name: "an old version",
			p:    types.RefreshPreferences{SkipMatching: aws.Bool(true)},
			given: func(i *state.Instance) {
				i.Member.LaunchTemplate = &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-1"), Version: aws.String("0")}
			},
			status: "Successful",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, l := newWorld(t, t.TempDir())
				defer store.Close() //nolint:errcheck // the test is over
				changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
				settle(t, store, l)
				one := activeIDs(store)[0]
				put(t, store, func(tx *state.Tx) {
					row := tx.Instances.Get(one).Clone()
					c.given(row)
					tx.Instances.Put(row)
				})
				c.p.MinHealthyPercentage = aws.Int32(90)
				c.p.MaxHealthyPercentage = aws.Int32(100)
				startRefresh(t, store, c.p)
				settle(t, store, l)
				time.Sleep(c.after)
				settle(t, store, l)
				r, same := refreshOf(store), slices.Contains(activeIDs(store), one)
				if r.Status != c.status || !strings.Contains(aws.ToString(r.StatusReason), c.says) || same != c.same {
					t.Errorf("the refresh is %s, %s; the instance is there: %v", r.Status, aws.ToString(r.StatusReason), same)
				}
			})
		})
	}
}
