package sim

import "net"

// Machine is a host of the network. It has power, and runs one process or none.
type Machine struct {
	n       *Network
	name    string // its address
	ip      net.IP
	off     bool
	process *Process
	port    int // the last one given to an outbound connection
}

// Machine returns the machine with an IP address, which joins the network on first use.
func (n *Network) Machine(ip string) *Machine {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine(ip)
}

func (n *Network) machine(ip string) *Machine {
	m := n.machines[ip]
	if m == nil {
		m = &Machine{n: n, name: ip, ip: net.ParseIP(ip).To4(), port: firstPort}
		if m.ip == nil {
			panic("sim: machine " + ip + ": want an IPv4 address")
		}
		n.machines[ip] = m
	}
	return m
}

// firstPort and lastPort bound the ports of outbound connections.
const firstPort, lastPort = 32768, 60999

// Start begins a process. One that still runs is killed. A machine without power gets it back.
func (m *Machine) Start() *Process {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	m.power(true)
	if m.process != nil {
		m.process.end((*conn).reset)
	}
	m.process = &Process{machine: m, gone: make(chan struct{}), listeners: make(map[int]*listener)}
	return m.process
}

// PowerOff stops the machine without a word to anybody. The others notice when they get no answer, and are answered
// that nobody knows them once the machine is on again.
func (m *Machine) PowerOff() {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	m.power(false)
	if m.process != nil {
		m.process.end(func(c *conn) {
			c.fail(net.ErrClosed)
			c.out.drop()
		})
		m.process = nil
	}
}

// PowerOn starts the machine again, with no process.
func (m *Machine) PowerOn() {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	m.power(true)
}

func (m *Machine) power(on bool) {
	if m.off != on {
		return
	}
	m.off = !on
	for _, l := range m.n.sortedLinks() {
		switch {
		case l.from != m && l.to != m:
		case on:
			l.resume()
		case !l.hole:
			l.since = m.n.now()
		}
	}
}
