// race
// The thread sanitizer does not detect that a continuation hands a result over to the task that it resumes.

import Dispatch

final class Box: @unchecked Sendable {
    // `@unchecked Sendable` is right because each box is changed by one thread before it is handed over.
    var text = ""
}

@main struct Program {
    static func main() async {
        var count = 0
        for number in 0..<1000 {
            let box = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    let box = Box()
                    box.text = "number \(number)"
                    continuation.resume(returning: box)
                }
            }
            count += box.text.utf8.count
        }
        print(count)
    }
}
