import Dispatch
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import Synchronization
import TestSupport
import Testing

/// Verbs that show saves of another process: `watch` and `history --follow`.
@Suite struct FollowingTests {
    /// Runs a program in another process while this process saves. This process saves again and again until the program ends, so that the
    /// test does not depend on the time of a save.
    ///
    /// - Parameter arguments: Makes the program's name and arguments from the paths of the tool and of the store.
    private func output(
        _ kind: StoreKind, _ arguments: (_ tool: String, _ store: String) -> [String]
    ) async throws -> ChildProgram.Result {
        let folder = try ToolFolder()
        try await folder.fill("shop", kind, Shop.model, Shop.fill)
        let command = arguments(try ChildProgram.built("strata"), folder.path("shop"))
        let hasEnded = Mutex(false)
        async let running = withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try ChildProgram.run(command[0], Array(command.dropFirst())) })
            }
        }
        let container = try await folder.container("shop", kind, Shop.model)
        let saving = Task {
            for number in 0..<100_000 where !hasEnded.withLock({ $0 }) {
                try await container.write { context in
                    context.insert("Band")["name"] = .string("band \(number)")
                    context.insert("List")["name"] = .string(number % 2 == 0 ? "ignored" : "new \(number)")
                }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        let result = try await running
        hasEnded.withLock { $0 = true }
        try await saving.value
        try await container.close()
        return result
    }

    @Test(arguments: fileKinds)
    func `watch shows a result again when another process changes it`(_ kind: StoreKind) async throws {
        let result = try await output(kind) { tool, store in
            [tool, "watch", store, "List", "name != 'ignored'", "--columns", "name", "--times", "3", "--json"]
        }
        let lines = result.output.split(separator: "\n")
        #expect(result.status == 0 && lines.count == 3, "\(result)")
        let counts = lines.map { $0.matches(of: /"name"/).count }
        #expect(counts == counts.sorted() && Set(counts).count == 3, "each result differs from the one before: \(counts)")
    }

    @Test(arguments: fileKinds)
    func `history --follow shows each save of another process once, in order`(_ kind: StoreKind) async throws {
        let result = try await output(kind) { tool, store in
            // `head` ends after eight saves, and the tool with its next line.
            ["/bin/sh", "-c", "'\(tool)' history '\(store)' --follow --entity List --json | head -n 8"]
        }
        let saves = try result.output.split(separator: "\n").map { line in
            let save = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(save?["save"] as? Int)
        }
        #expect(saves.count == 8, "\(result)")
        #expect(saves == Array((saves[0])..<(saves[0] + 8)), "\(saves)")
    }
}
