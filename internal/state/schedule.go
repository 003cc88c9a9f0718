package state

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/store"
)

// Schedule is a schedule of EventBridge Scheduler.
type Schedule struct {
	ARN             string
	Group           string
	Name            string
	Description     *string `json:",omitempty"`
	Expression      string
	Timezone        string
	State           types.ScheduleState
	Target          types.Target
	Window          types.FlexibleTimeWindow
	StartDate       *time.Time `json:",omitzero"`
	EndDate         *time.Time `json:",omitzero"`
	AfterCompletion types.ActionAfterCompletion
	Token           string `json:",omitempty"` // of the call that made it
	Created         time.Time
	Changed         time.Time
	// Next is its next occurrence while it is enabled, and Due when the target is told of it: later, if it has a flexible time window.
	Next *time.Time `json:",omitzero"`
	Due  *time.Time `json:",omitzero"`
}

// Key returns the group and the name.
func (s *Schedule) Key() string { return ScheduleKey(s.Group, s.Name) }

// ScheduleKey returns the key of a schedule.
func ScheduleKey(group, name string) string { return group + "/" + name }

// ScheduleGroup is a group of schedules. The default one has no row until it has tags.
type ScheduleGroup struct {
	Name    string
	ARN     string
	Tags    []types.Tag `json:",omitempty"`
	Token   string      `json:",omitempty"`
	Created *time.Time  `json:",omitzero"`
	Changed *time.Time  `json:",omitzero"`
}

var (
	schedulesByDue = store.Index[*Schedule]{Name: "due", Value: func(s *Schedule) string { return dueAt(s.Due) }}

	schedules = &store.Definition[*Schedule]{
		Name:    "schedules",
		Key:     (*Schedule).Key,
		Indexes: []store.Index[*Schedule]{schedulesByDue},
	}
	scheduleGroups = &store.Definition[*ScheduleGroup]{Name: "schedule_groups", Key: func(g *ScheduleGroup) string { return g.Name }}
)

// NextSchedule returns the schedule that is due first, or nil.
func (v *View) NextSchedule() *Schedule {
	for s := range v.Schedules.InOrder(schedulesByDue) {
		return s
	}
	return nil
}

// DeleteScheduleGroup deletes a group with its schedules.
func (tx *Tx) DeleteScheduleGroup(name string) {
	for s := range tx.Schedules.Behind(name + "/") {
		if !strings.HasPrefix(s.Key(), name+"/") {
			break
		}
		tx.Schedules.Delete(s.Key())
	}
	tx.ScheduleGroups.Delete(name)
}
