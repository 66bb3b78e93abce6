import Foundation
import TestSupport
import Testing

/// The program of `Examples/Notes`, run as a process.
@Suite struct NotesExampleTests {
    private static func run(_ arguments: String...) throws -> String {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Notes")
        let result = try ChildProgram.run(program.path, arguments)
        #expect(result.status == 0, "Notes \(arguments)")
        return result.output
    }

    @Test func `the notes program keeps, lists and removes notes`() throws {
        let bed = try TestBed(.lmdb)
        let file = bed.file.path
        #expect(try Self.run(file, "add", "milk", "Buy milk") == "")
        #expect(try Self.run(file, "add", "post", "Write a letter") == "")
        #expect(try Self.run(file, "list") == "milk: Buy milk\npost: Write a letter\n")
        #expect(try Self.run(file, "list", "p") == "post: Write a letter\n")
        #expect(try Self.run(file, "remove", "milk") == "")
        #expect(try Self.run(file, "list") == "post: Write a letter\n")
    }
}
