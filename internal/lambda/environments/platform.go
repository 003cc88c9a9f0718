package environments

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// stamp is how Lambda writes times.
const stamp = "2006-01-02T15:04:05.000Z"

// event is a line of Lambda's own in a log of the format JSON: https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
type event struct {
	Time   string `json:"time"`
	Type   string `json:"type"`
	Record record `json:"record"`
}

type record struct {
	RequestID string   `json:"requestId"`
	Version   string   `json:"version,omitempty"`
	Metrics   *metrics `json:"metrics,omitempty"`
	Status    string   `json:"status,omitempty"`
}

type metrics struct {
	Duration float64 `json:"durationMs"`
	Billed   float64 `json:"billedDurationMs"`
	Memory   int32   `json:"memorySizeMB"`
	Init     float64 `json:"initDurationMs,omitempty"`
}

func eventLine(at time.Time, kind string, r record) string {
	text, _ := json.Marshal(event{at.UTC().Format(stamp), kind, r}) //nolint:errcheck // texts and finite numbers can't fail
	return string(text) + "\n"
}

func (inv *invocation) inJSON() bool {
	return inv.Version.LoggingConfig.LogFormat == types.LogFormatJson
}

// startLine is what the log says when an invocation begins. It's of the level INFO.
func (inv *invocation) startLine() string {
	switch {
	case !inv.inJSON():
		return fmt.Sprintf("START RequestId: %s Version: %s\n", inv.RequestID, *inv.Version.Version)
	case inv.Version.LoggingConfig.SystemLogLevel == types.SystemLogLevelWarn:
		return ""
	}
	return eventLine(inv.handed, "platform.start", record{RequestID: inv.RequestID, Version: *inv.Version.Version})
}

// endLines are what the log says when an invocation has ended. In JSON they're of the level INFO if it succeeded, and WARN otherwise.
func (inv *invocation) endLines(at time.Time, took, initial time.Duration, failed bool) (lines []string) {
	m := metrics{Duration: milliseconds(took), Memory: *inv.Version.MemorySize}
	m.Billed = math.Max(1, math.Ceil(m.Duration))
	if inv.cold {
		m.Init = milliseconds(initial)
	}
	if inv.inJSON() {
		if !failed && inv.Version.LoggingConfig.SystemLogLevel == types.SystemLogLevelWarn {
			return nil
		}
		return []string{eventLine(at, "platform.report", record{RequestID: inv.RequestID, Metrics: &m, Status: inv.status(failed)})}
	}
	text := fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tBilled Duration: %.0f ms\tMemory Size: %d MB\t",
		inv.RequestID, m.Duration, m.Billed, m.Memory)
	if inv.cold {
		text += fmt.Sprintf("Init Duration: %.2f ms\t", m.Init)
	}
	return []string{fmt.Sprintf("END RequestId: %s\n", inv.RequestID), text + "\n"}
}

func (inv *invocation) status(failed bool) string {
	switch {
	case inv.timedOut:
		return "timeout"
	case failed:
		return "error"
	}
	return "success"
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
