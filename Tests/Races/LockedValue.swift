// race
// The thread sanitizer does not detect that the standard library's mutex hands its value over to a thread that has waited for it.

import Dispatch
import Foundation
import Synchronization

final class Counter: Sendable {
    let value = Mutex([0])
}

@main struct Program {
    static func main() {
        let counter = Counter()
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<100 {
                counter.value.withLock { value in
                    value[0] += 1
                    Thread.sleep(forTimeInterval: 0.0001)
                }
            }
        }
        print(counter.value.withLock { $0[0] })
    }
}
