// leak:CFRunLoopSourceCreate
// A run-loop source keeps Foundation's Process until somebody runs the run loop of the thread that started it.

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
