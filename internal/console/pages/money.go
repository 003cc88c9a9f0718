package pages

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/console/costs"
	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/console/plot"
)

// moneyView shows what machines cost by the list of prices, and what was made of them.
func (p *Pages) moneyView() view {
	return view{
		path:  "/console/money",
		nav:   "Money",
		title: func(*visit) string { return "Money" },
		body:  p.moneyBody,
		every: plotsEvery,
	}
}

func (p *Pages) moneyBody(v *visit) ([]live.Fragment, error) {
	r, err := costs.Of(v.ctx, p.opts.Services, p.opts.Prices, p.opts.Now())
	if err != nil {
		return nil, err
	}
	parts := []live.Fragment{}
	if !r.Priced {
		parts = append(parts, section("prices", "No prices", markup.E("p", markup.Class("why"), "Start Pintle with --prices FILE, a JSON object of prices an hour by instance type. Hours are counted without it.")))
	}
	return append(parts, p.rate(r.Now), p.bill("today", "Today", r.Today), p.bill("month", "This month", r.Month)), nil
}

// rate shows the machines that there are, and what an hour of them costs.
func (p *Pages) rate(r costs.Rate) live.Fragment {
	var rows []markup.Node
	for _, m := range r.Machines {
		rows = append(rows, row(m.Type, m.Count, priceOf(p.opts.Prices, m.Type), amount(m.Cost)))
	}
	d := drawing{id: "machines", title: "Machines", Plot: plot.Plot{From: r.From, To: r.To, Lines: r.Over}}
	return plots("now", "Now", []drawing{d}, nil,
		markup.E("ul", markup.Class("figures"), markup.E("li", markup.E("b", string(amount(r.Cost))), " an hour")),
		table("Machines that there are", columns("Instance type", "#Machines", "#Price an hour", "#Cost an hour"), rows...))
}

// bill shows what a time has cost.
func (p *Pages) bill(id, title string, t costs.Time) live.Fragment {
	figures := []markup.Node{
		markup.E("li", markup.E("b", string(amount(t.Cost))), " cost"),
		markup.E("li", markup.E("b", string(amount(t.AtPeak))), " with as many machines as at the busiest moment all the time"),
		markup.E("li", markup.E("b", string(amount(t.Saved))), " saved by scaling, to zero and otherwise"),
		markup.E("li", markup.E("b", short(t.GPUHoursHeld)), " of ", markup.E("b", short(t.GPUHours)), " GPU-hours were held by tasks", share(t.GPUHoursHeld, t.GPUHours)),
	}
	var rows []markup.Node
	for _, i := range t.Items {
		rows = append(rows, row(i.Type, amount(i.Hours), numeric(short(i.Most)), priceOf(p.opts.Prices, i.Type), amount(i.Cost), amount(i.AtPeak)))
	}
	more := ""
	if len(t.Unpriced) > 0 && len(p.opts.Prices) > 0 {
		more = "The list of prices doesn't have " + strings.Join(t.Unpriced, ", ") + "."
	}
	return section(id, title, markup.E("p", "Counted since ", moment(&t.Since)), markup.E("ul", markup.Class("figures"), figures),
		table("What machines cost: "+title, columns("Instance type", "#Hours", "#Most at once", "#Price an hour", "#Cost", "#At the peak"), rows...), markup.E("p", more))
}

// amount writes hours, or a sum of money in whatever currency prices are.
func amount(sum float64) numeric { return numeric(strconv.FormatFloat(sum, 'f', 2, 64)) }

func priceOf(prices map[string]float64, name string) numeric {
	if price, has := prices[name]; has {
		return numeric(number(price))
	}
	return "–"
}

func share(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*part/whole)
}
