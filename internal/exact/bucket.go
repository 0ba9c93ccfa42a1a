package exact

// A Bucket fills at n units per d nanoseconds and is taken from.
//
// It counts in parts: 1/d of a unit, so that n parts flow in every nanosecond and no instant needs a division. The
// only rounding is in When, up to the next whole nanosecond, and in SetRate, once, down by less than a nanosecond's
// worth. The level can never be negative: who wants more than there is comes back when there is enough.
//
// A full Bucket holds burst units; Run may fill it beyond that, Advance never does. A Bucket is a value: a copy is a
// plan of what would happen. d == 0 stands for an unlimited rate: units are then worth no parts, and there is always
// enough.
type Bucket struct {
	n, d  uint64
	burst uint64
	full  U128 // burst in parts
	level U128 // parts
	at    int64
}

// NewBucket returns a full Bucket at the instant 0, which no later one precedes. n, d and burst must be at least 1;
// n and d are 0 for unlimited.
func NewBucket(n, d, burst uint64) Bucket {
	b := Bucket{n: n, d: d, burst: burst, full: Mul(burst, d)}
	b.level = b.full
	return b
}

// At returns the instant to which the level belongs.
func (b *Bucket) At() int64 { return b.at }

// Level returns what the Bucket holds, in parts.
func (b *Bucket) Level() U128 { return b.level }

// Full returns what the Bucket holds when it is full, in parts.
func (b *Bucket) Full() U128 { return b.full }

// Parts returns the parts that are worth n units.
func (b *Bucket) Parts(n uint64) U128 { return Mul(n, b.d) }

// PartsOf returns the parts that are worth so many units, as far as they can be counted.
func (b *Bucket) PartsOf(units U128) U128 { return units.Times(b.d) }

// Units returns the whole units in parts; in an unlimited Bucket, which needs none, those of a full one.
func (b *Bucket) Units(parts U128) U128 {
	if b.d == 0 {
		return U128{0, b.burst}
	}
	q, _ := parts.Div(b.d)
	return q
}

// Float returns the units in parts, for gauges.
func (b *Bucket) Float(parts U128) float64 {
	if b.d == 0 {
		return 0
	}
	q, r := parts.Div(b.d)
	return float64(q.Hi)*(1<<64) + float64(q.Lo) + float64(r)/float64(b.d)
}

// Empty takes all there is.
func (b *Bucket) Empty() { b.level = U128{} }

// Run moves the Bucket on to now, filling it beyond full if need be: while somebody waits, what flows is his.
// An instant that lies behind changes nothing.
func (b *Bucket) Run(now int64) {
	if now > b.at {
		b.level = b.level.Add(Mul(uint64(now-b.at), b.n))
		b.at = now
	}
}

// Advance moves the Bucket on to now, filling it up to the cap and spilling what is over, an excess from before
// included.
func (b *Bucket) Advance(now int64, limit U128) {
	if now > b.at {
		b.Run(now)
		b.Clip(limit)
	}
}

// Skip moves the Bucket on to now without filling it.
func (b *Bucket) Skip(now int64) { b.at = max(b.at, now) }

// Clip spills what is over the limit.
func (b *Bucket) Clip(limit U128) { b.level = Least(b.level, limit) }

// Has says whether need parts are there.
func (b *Bucket) Has(need U128) bool { return !b.level.Less(need) }

// Take takes parts, which must be there.
func (b *Bucket) Take(parts U128) { b.level = b.level.Sub(parts) }

// Give puts parts back.
func (b *Bucket) Give(parts U128) { b.level = b.level.Add(parts) }

// When returns the first whole nanosecond at which need parts are there if nobody takes any: never one early, never
// one late. What lies beyond the end of time is the largest int64.
func (b *Bucket) When(need U128) int64 {
	if b.Has(need) {
		return b.at
	}
	wait := need.Sub(b.level).DivUp(b.n).Int64()
	const most = 1<<63 - 1
	if wait > most-b.at {
		return most
	}
	return b.at + wait
}

// SetRate changes the rate, 0 and 0 for unlimited. The same rate changes nothing; another one may round the level down once, by less than
// what flows in a nanosecond. From unlimited a Bucket comes back full.
func (b *Bucket) SetRate(n, d uint64) {
	if n == b.n && d == b.d {
		return
	}
	was := b.d
	b.n, b.d, b.full = n, d, Mul(b.burst, d)
	if was == 0 {
		b.level = b.full
		return
	}
	b.level = Rescale(b.level, was, d)
}

// SetBurst changes what a full Bucket holds. What it holds now it keeps, be it more than that: see Clip.
func (b *Bucket) SetBurst(burst uint64) { b.burst, b.full = burst, Mul(burst, b.d) }

// Rescale turns parts of 1/was into parts of 1/is, rounded down.
func Rescale(parts U128, was, is uint64) U128 {
	units, rest := parts.Div(was)
	fine, _ := Mul(rest, is).Div(was)
	return units.Times(is).Add(fine)
}
