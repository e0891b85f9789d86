// Package fakecloudshell is a CloudShell server for tests: the part of its automation API
// ("TestShell XML-RPC", port 8029) that the reservation mutex needs, over real HTTP or HTTPS
// on the loopback interface. README.md says what is known of the real server, and what is not:
// that is a field of [Policy].
//
// Every request can meet a [Fault], as an [Injector] decides:
//
//	// the third is carried out, and its answer is lost
//	server.Inject(fakecloudshell.At(fakecloudshell.AddService, 3, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}))
package fakecloudshell
