package pages

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

// TestLinesShown: long lines are shortened, and so many long ones aren't shown that the page would be large; the last ones are.
func TestLinesShown(t *testing.T) {
	v := &visit{r: httptest.NewRequest("GET", "/console/log?q=x", nil)}
	var events []types.OutputLogEvent
	for range linesShown {
		events = append(events, types.OutputLogEvent{Message: aws.String(strings.Repeat("x", 2*lineShown))}, types.OutputLogEvent{Message: aws.String("another")})
	}
	events = append(events, types.OutputLogEvent{Message: aws.String("the last x")})
	lines := v.linesOf(events)
	if n := len(lines); n != bytesShown/lineShown || *lines[n-1].Message != "the last x" {
		t.Errorf("%d lines are shown", n)
	}
	for in, want := range map[string]string{
		"short":                              "short",
		strings.Repeat("ż", lineShown/2+1):   strings.Repeat("ż", lineShown/2) + " … (4098 bytes in all)",
		"x" + strings.Repeat("ż", lineShown): "x" + strings.Repeat("ż", lineShown/2-1) + " … (8193 bytes in all)",
	} {
		if got := shortened(in); got != want {
			t.Errorf("%d bytes became %q", len(in), got)
		}
	}
}
