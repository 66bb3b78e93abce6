// leak:CFRunLoopSourceCreate
// Foundation does not release a Process that has ended before the run loop of its first thread runs.

import Dispatch
import Foundation

@main struct Program {
    static func main() throws {
        let hasEnded = DispatchSemaphore(value: 0)
        let process = Process()
        process.executableURL = URL(filePath: "/bin/true")
        process.terminationHandler = { _ in hasEnded.signal() }
        try process.run()
        hasEnded.wait()
    }
}
