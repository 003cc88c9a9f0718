package insights

import "strings"

// call parses a call, from behind the opening parenthesis.
func (p *parser) call(name string, start int) (formula, error) {
	if make := aggregations[name]; make != nil {
		return p.aggregate(name, start, make)
	}
	switch name {
	case "bin":
		if err := p.check("@timestamp", start); err != nil {
			return nil, err
		}
		of := p.field("@timestamp")
		length, err := p.period()
		return p.close(func(r *row) value { return length.floor(of(r)) }, err)
	case "datefloor", "dateceil":
		return p.rounded(name)
	case "now":
		return p.close(func(r *row) value { return numberOf(float64(r.run.now.Unix())) }, nil)
	}
	f, ok := functions[name]
	if !ok {
		return nil, p.wrong(start, "the function %s is not known", name)
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if len(args) < f.least || f.most >= 0 && len(args) > f.most {
		return nil, p.wrong(start, "%s has another number of arguments than %d", name, len(args))
	}
	return func(r *row) value {
		values := make([]value, len(args))
		for i, arg := range args {
			values[i] = arg(r)
		}
		v := f.of(values)
		if v.kind == excessive {
			r.run.fail(ErrTooLarge)
			return value{}
		}
		return v
	}, nil
}

// close takes the closing parenthesis of a call.
func (p *parser) close(of formula, err error) (formula, error) {
	if err == nil && !p.take(")") {
		err = p.unexpected()
	}
	return of, err
}

func (p *parser) arguments() (args []formula, err error) {
	if p.take(")") {
		return nil, nil
	}
	err = p.list(func() error {
		of, err := p.expression()
		args = append(args, of)
		return err
	})
	if err == nil && !p.take(")") {
		err = p.unexpected()
	}
	return args, err
}

// rounded parses the arguments of datefloor and dateceil: a time and a period.
func (p *parser) rounded(name string) (formula, error) {
	of, err := p.expression()
	if err == nil && !p.take(",") {
		err = p.unexpected()
	}
	if err != nil {
		return nil, err
	}
	length, err := p.period()
	round := length.floor
	if name == "dateceil" {
		round = length.ceil
	}
	return p.close(func(r *row) value { return round(of(r)) }, err)
}

// aggregate parses the arguments of a function of stats, which stand for rows before stats made others of them.
func (p *parser) aggregate(name string, start int, make func(float64) accumulator) (formula, error) {
	into := p.aggregates
	if into == nil {
		return nil, p.wrong(start, "the function %s is for stats", name)
	}
	if (name == "earliest" || name == "latest") && p.known != nil {
		return nil, p.wrong(start, "%s needs @timestamp, which is gone after stats", name)
	}
	p.aggregates = nil
	defer func() { p.aggregates = into }()
	var a aggregate
	var err error
	percent := 0.0
	all := name == "count" && (p.take("*") || p.peek() == ')')
	if !all {
		a.of, err = p.expression()
	}
	if err == nil && name == "pct" {
		if !p.take(",") {
			return nil, p.unexpected()
		}
		if percent, err = p.number(); err == nil && percent > 100 {
			err = p.wrong(start, "pct's second argument must be between 0 and 100")
		}
	}
	a.new = func() accumulator { return make(percent) }
	i := len(*into)
	*into = append(*into, a)
	return p.close(func(r *row) value { return r.sums[i] }, err)
}

var units = map[string]string{
	"ms": "ms", "msec": "ms", "s": "s", "sec": "s", "m": "m", "min": "m", "h": "h", "hr": "h", "d": "d", "w": "w",
	"mo": "mo", "mon": "mo", "q": "q", "qtr": "q", "y": "y", "yr": "y",
}

// period parses a length of time such as 5m.
func (p *parser) period() (period, error) {
	p.blank()
	start := p.at
	n, err := p.number()
	if err != nil {
		return period{}, err
	}
	unit := p.at
	for p.at < len(p.text) && inName(p.text[p.at]) {
		p.at++
	}
	known, ok := units[strings.ToLower(p.text[unit:p.at])]
	if out, valid := newPeriod(n, known); ok && valid {
		return out, nil
	}
	return period{}, p.wrong(start, "%s is no period: it is a whole number and a unit, such as 30s, 5m, 1h or 1d", p.text[start:p.at])
}
