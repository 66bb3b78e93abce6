import StoreInterface
import StoreModel

/// A store does not do what a check of ``StoreContract`` demands.
public struct ContractViolation: Error, Sendable, CustomStringConvertible {
    /// The name of the check.
    public let check: String
    /// The requirement that the store breaks.
    public let obligation: String
    /// The result or state that the obligation demands, as text.
    public let expected: String
    /// The result or state that the store has instead, as text.
    public let found: String
    /// Repeats the run: ``StoreContract/Check/run(on:seed:)``.
    public let seed: UInt64
    /// The file and line of the expectation in the suite. nil if the store threw an error that the check does not expect.
    public let location: String?

    /// The check, the expectation, the finding, the obligation and the seed, on several lines.
    public var description: String {
        """
        the store breaks the contract: "\(check)"
          expected: \(expected)
          found: \(found)
          obligation: \(obligation)
          repeat with seed \(seed)\(location.map { "; see \($0)" } ?? "")
        """
    }
}

/// An expectation of a check that a store does not meet.
struct FailedExpectation: Error {
    var expected: String
    var found: String
    var location: String
}

private func shortened(_ value: Any) -> String {
    let text = "\(value)"
    return text.count <= 600 ? text : "\(text.prefix(600))… (\(text.count) characters)"
}

/// - Parameter note: the arguments of the call whose result is compared.
func expect<T: Equatable>(
    _ found: T, equals expected: T, _ note: @autoclosure () -> String = "", file: StaticString = #fileID, line: Int = #line
) throws {
    if found == expected { return }
    let note = note()
    throw FailedExpectation(
        expected: shortened(expected) + (note.isEmpty ? "" : " (\(note))"), found: shortened(found), location: "\(file):\(line)")
}

func expect(
    _ condition: Bool, _ expected: @autoclosure () -> String, file: StaticString = #fileID, line: Int = #line
) throws {
    if !condition { throw FailedExpectation(expected: expected(), found: "that this is false", location: "\(file):\(line)") }
}

func require<T>(
    _ value: T?, _ expected: @autoclosure () -> String = "a value", file: StaticString = #fileID, line: Int = #line
) throws -> T {
    guard let value else { throw FailedExpectation(expected: expected(), found: "nil", location: "\(file):\(line)") }
    return value
}

/// - Parameter code: nil expects an error of any code.
func expectError(
    _ code: StoreError.Code? = nil, file: StaticString = #fileID, line: Int = #line, _ body: () throws -> Void
) throws {
    let expected = "StoreError " + (code.map { ".\($0)" } ?? "of any code")
    do {
        try body()
    } catch let error as StoreError where code == nil || error.code == code {
        return
    } catch {
        throw FailedExpectation(expected: expected, found: "the error: \(error)", location: "\(file):\(line)")
    }
    throw FailedExpectation(expected: expected, found: "no error", location: "\(file):\(line)")
}

/// Thrown by the body of a transaction that a check aborts.
struct Abort: Error {}

/// Runs a body that throws ``Abort``, and expects to get that error back.
func expectAbort(file: StaticString = #fileID, line: Int = #line, _ body: () throws -> Void) throws {
    do {
        try body()
    } catch is Abort {
        return
    }
    throw FailedExpectation(expected: "the error of the body", found: "no error", location: "\(file):\(line)")
}
