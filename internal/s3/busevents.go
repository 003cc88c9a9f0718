package s3

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/call"
)

// What S3 tells EventBridge: https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
type (
	busEvent struct {
		Version    string    `json:"version"`
		ID         string    `json:"id"`
		DetailType string    `json:"detail-type"`
		Source     string    `json:"source"`
		Account    string    `json:"account"`
		Time       string    `json:"time"`
		Region     string    `json:"region"`
		Resources  []string  `json:"resources"`
		Detail     busDetail `json:"detail"`
	}
	busDetail struct {
		Version         string    `json:"version"`
		Bucket          busBucket `json:"bucket"`
		Object          busObject `json:"object"`
		RequestID       string    `json:"request-id"`
		Requester       string    `json:"requester"`
		SourceIPAddress string    `json:"source-ip-address,omitempty"`
		Reason          string    `json:"reason,omitempty"`
		DeletionType    string    `json:"deletion-type,omitempty"`
	}
	busBucket struct {
		Name string `json:"name"`
	}
	busObject struct {
		Key       string `json:"key"` // as it is, unlike that in messages to queues
		Size      *int64 `json:"size,omitempty"`
		ETag      string `json:"etag,omitempty"`
		VersionID string `json:"version-id,omitempty"`
		Sequencer string `json:"sequencer,omitempty"`
	}
)

// reasons are why an object came, by the names of events in messages to queues.
var reasons = map[string]string{
	"ObjectCreated:Put":                     "PutObject",
	"ObjectCreated:Post":                    "POST Object",
	"ObjectCreated:Copy":                    "CopyObject",
	"ObjectCreated:CompleteMultipartUpload": "CompleteMultipartUpload",
}

// busEvent returns what the default bus is told of the event that a record is of.
func (s *Service) busEvent(c call.Call, now time.Time, r *record, o *objects.Object) busEvent {
	e := busEvent{
		Version:   "0",
		ID:        uuid.NewString(),
		Source:    "aws.s3",
		Account:   s.opts.ID,
		Time:      now.UTC().Format("2006-01-02T15:04:05Z"),
		Region:    s.opts.Region,
		Resources: []string{r.S3.Bucket.Arn},
		Detail: busDetail{
			Version: "0",
			Bucket:  busBucket{o.Bucket},
			Object: busObject{
				Key: o.Key, Size: r.S3.Object.Size, ETag: r.S3.Object.ETag, VersionID: r.S3.Object.VersionID, Sequencer: r.S3.Object.Sequencer,
			},
			RequestID:       c.RequestID,
			Requester:       s.opts.ID,
			SourceIPAddress: r.RequestParameters["sourceIPAddress"],
		},
	}
	if c.Principal == call.S3 {
		e.Detail.Requester, e.Detail.SourceIPAddress = "s3.amazonaws.com", ""
	}
	family, kind, _ := strings.Cut(r.EventName, ":")
	switch {
	case family == "ObjectTagging" && kind == "Put":
		e.DetailType = "Object Tags Added"
	case family == "ObjectTagging":
		e.DetailType = "Object Tags Deleted"
	case family == "ObjectCreated":
		e.DetailType, e.Detail.Reason = "Object Created", reasons[r.EventName]
	default:
		e.DetailType, e.Detail.Reason, e.Detail.DeletionType = "Object Deleted", "DeleteObject", "Permanently Deleted"
		if family == "LifecycleExpiration" {
			e.Detail.Reason = "Lifecycle Expiration"
		}
		if strings.HasSuffix(kind, "MarkerCreated") {
			e.Detail.DeletionType = "Delete Marker Created"
		}
	}
	return e
}

// message returns the body of the message that somebody gets of an event.
func (s *Service) message(c call.Call, now time.Time, name string, to configuration, o *objects.Object) ([]byte, error) {
	r := s.record(c, now, name, to.id(), o)
	if to.isBus() {
		return json.Marshal(s.busEvent(c, now, &r, o))
	}
	return json.Marshal(event{[]record{r}})
}
