import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// An error of a verb: one line with the thing, the reason and the remedy, and the exit status.
struct ToolError: Error, CustomStringConvertible {
    /// The meaning of an exit status.
    enum Status: Int32 {
        /// The verb ran, and failed or found faults.
        case failed = 1
        /// A wrong name, or an input that cannot be read.
        case wrongInput = 2
    }

    var status: Status
    var description: String

    /// An error with the status 2.
    static func wrongInput(_ description: String) -> ToolError { ToolError(status: .wrongInput, description: description) }
    /// An error with the status 1.
    static func failed(_ description: String) -> ToolError { ToolError(status: .failed, description: description) }

    /// The status 1 without a further line, because the verb has printed its findings.
    static let printedFindings = ToolError(status: .failed, description: "")

    /// Converts an error of the library.
    init(_ error: any Error) {
        switch error {
        case let error as ToolError: self = error
        case let error as StoreError:
            // The library's parameter is an option of the tool.
            let message = error.message.replacing(", or open it with readOnly: true", with: ", or leave out --write")
            self.init(status: Self.status(of: error.code), description: message)
        case let error as FetchError: self.init(status: .wrongInput, description: error.message)
        case let error as DatasetError: self.init(status: .wrongInput, description: error.description)
        case let error as ModelError: self.init(status: .wrongInput, description: error.description)
        case let error as HistoryError: self.init(status: .wrongInput, description: error.description)
        case is CancellationError: self.init(status: .failed, description: "cancelled")
        default: self.init(status: .failed, description: "\(error)")
        }
    }

    init(status: Status, description: String) {
        self.status = status
        self.description = description
    }

    private static func status(of code: StoreError.Code) -> Status {
        switch code {
        case .cannotOpen, .notAStore, .damaged, .formatTooNew, .schemaMismatch, .schemaTooNew, .readOnly, .remoteFileSystem,
            .unsupported:
            .wrongInput
        default: .failed
        }
    }
}

extension Error {
    /// The system's text of an error, without its full stop.
    var reason: String { localizedDescription.trimmingCharacters(in: [".", " "]) }
}
