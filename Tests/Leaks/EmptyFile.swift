// leak:readBytesFromFile
// Foundation does not free its buffer after it has read an empty file.

import Foundation

@main struct Program {
    static func main() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data().write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        print(try Data(contentsOf: file).count)
    }
}
