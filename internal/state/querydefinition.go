package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/store"
)

// QueryDefinition is a query of CloudWatch Logs Insights that was saved under a name.
type QueryDefinition struct {
	ID           string
	Name         string
	Query        string
	LogGroups    []string               `json:",omitempty"`
	Parameters   []types.QueryParameter `json:",omitempty"`
	LastModified time.Time
}

var queryDefinitions = &store.Definition[*QueryDefinition]{
	Name: "queryDefinitions",
	Key:  func(d *QueryDefinition) string { return d.ID },
}
