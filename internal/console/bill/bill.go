// Package bill computes what machines cost by a list of prices: what they do now, what they did in a time, and what they would have cost if as many
// as at the busiest moment had been there all that time. It is pure.
package bill

import (
	"cmp"
	"slices"
	"time"
)

// Use is how long the machines of an instance type were there in a time.
type Use struct {
	Type  string  `json:"instanceType"`
	Hours float64 `json:"hours"`      // of all of them together
	Most  float64 `json:"mostAtOnce"` // how many there were
}

// Item is what the machines of an instance type cost.
type Item struct {
	Use
	Price  float64 `json:"pricePerHour"` // 0 if the list doesn't have the type
	Cost   float64 `json:"cost"`
	AtPeak float64 `json:"costAtPeak"` // what the most of them would have cost all that time
}

// Bill is what all machines cost.
type Bill struct {
	Items    []Item   `json:"machines"`      // the dearest first
	Cost     float64  `json:"cost"`          // of those whose price is known
	AtPeak   float64  `json:"costAtPeak"`    // of those, too
	Unpriced []string `json:"withoutAPrice"` // types that the list of prices doesn't have
}

// Saved is what it cost less than having as many machines as at the busiest moment all the time.
func (b Bill) Saved() float64 { return max(0, b.AtPeak-b.Cost) }

// Of returns the bill for a time in which machines were used. Prices are by instance type and hour.
func Of(uses []Use, prices map[string]float64, length time.Duration) (b Bill) {
	for _, u := range uses {
		if u.Hours <= 0 && u.Most <= 0 {
			continue
		}
		i := Item{Use: u, Price: prices[u.Type]}
		i.Cost = i.Price * u.Hours
		i.AtPeak = max(i.Cost, i.Price*u.Most*length.Hours())
		if i.Price == 0 {
			b.Unpriced = append(b.Unpriced, u.Type)
		}
		b.Items = append(b.Items, i)
		b.Cost += i.Cost
		b.AtPeak += i.AtPeak
	}
	slices.SortFunc(b.Items, func(x, y Item) int {
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Hours, x.Hours), cmp.Compare(x.Type, y.Type))
	})
	slices.Sort(b.Unpriced)
	return b
}

// Rate returns what machines cost in an hour, by how many there are of each type.
func Rate(machines map[string]float64, prices map[string]float64) (rate float64) {
	for name, n := range machines {
		rate += n * prices[name]
	}
	return rate
}

// StartOfDay and StartOfMonth return when the day and the month of a time began, in UTC.
func StartOfDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// StartOfMonth is StartOfDay's for months.
func StartOfMonth(t time.Time) time.Time {
	year, month, _ := t.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}
