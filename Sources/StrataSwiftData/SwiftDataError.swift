import ObjectGraph

/// An error of a container or a context. Compare with the constants: `catch SwiftDataError.unsupportedPredicate`.
///
/// ```swift
/// do {
///     saves = try context.fetchHistory(newer)
/// } catch SwiftDataError.historyTokenExpired {
///     saves = []  // then fetch the objects again
/// }
/// ```
public struct SwiftDataError: Error, Sendable, Hashable {
    private enum Code {
        case unsupportedPredicate, unsupportedSortDescriptor, unsupportedKeyPath, unknownSchema,
            configurationSchemaNotFoundInContainerSchema, configurationFileNameContainsInvalidCharacters
        case duplicateConfiguration, loadIssueModelContainer, backwardMigration, missingModelContext, modelValidationFailure,
            historyTokenExpired
        case includePendingChangesWithBatchSize, sortingPendingChangesWithIdentifiers, configurationFileNameTooLong,
            invalidTransactionFetchRequest, unknownDataStoreSchema
    }

    private let code: Code
    private let message: String

    private init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Returns whether two errors are of one kind.
    public static func == (a: Self, b: Self) -> Bool { a.code == b.code }
    /// Hashes the kind of the error.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
    /// Returns whether an error that was thrown is of this kind.
    public static func ~= (kind: Self, error: any Error) -> Bool { (error as? Self) == kind }

    /// A predicate can be evaluated neither by the store nor in memory.
    public static let unsupportedPredicate = Self(.unsupportedPredicate, "the predicate cannot be evaluated")
    /// A sort cannot be made.
    public static let unsupportedSortDescriptor = Self(.unsupportedSortDescriptor, "the sort descriptor cannot be used")
    /// A key path refers to no stored property.
    public static let unsupportedKeyPath = Self(.unsupportedKeyPath, "the key path refers to no stored property")
    /// The schema does not contain a type or an identifier.
    public static let unknownSchema = Self(.unknownSchema, "the schema does not contain this type or identifier")
    /// A configuration has models that the container's schema does not contain.
    public static let configurationSchemaNotFoundInContainerSchema = Self(
        .configurationSchemaNotFoundInContainerSchema, "a configuration has models that the container's schema does not contain")
    /// The name of a configuration cannot be a file name.
    public static let configurationFileNameContainsInvalidCharacters = Self(
        .configurationFileNameContainsInvalidCharacters, "the name of a configuration cannot be a file name")
    /// A container got several configurations.
    public static let duplicateConfiguration = Self(
        .duplicateConfiguration, "a container has one store. Use one configuration, and one container per store")
    /// The store cannot be opened.
    public static let loadIssueModelContainer = Self(.loadIssueModelContainer, "the store cannot be opened")
    /// The store, or a migration plan, leads to an older schema.
    public static let backwardMigration = Self(.backwardMigration, "the migration leads to an older schema")
    /// The object is in no context.
    public static let missingModelContext = Self(.missingModelContext, "the object is in no context")
    /// A save, or a deletion by a predicate, in a container whose configuration has `allowsSave: false`.
    ///
    /// Objects that are not valid throw `SaveError` `.validation`, and models that are not valid throw `ModelError`. Both are types of the
    /// module `ObjectGraph`.
    public static let modelValidationFailure = Self(.modelValidationFailure, "the configuration does not allow saves")
    /// The history after a token was deleted, or the token belongs to another store.
    public static let historyTokenExpired = Self(.historyTokenExpired, "the history token is expired")

    /// Never thrown: a fetch in batches returns unsaved objects, too.
    public static let includePendingChangesWithBatchSize = Self(
        .includePendingChangesWithBatchSize, "a fetch in batches cannot include unsaved changes")
    /// Never thrown: identifiers of unsaved objects are sorted, too.
    public static let sortingPendingChangesWithIdentifiers = Self(
        .sortingPendingChangesWithIdentifiers, "identifiers of unsaved objects cannot be sorted")
    /// Never thrown: a container throws the store's error if the file system refuses the name.
    public static let configurationFileNameTooLong = Self(
        .configurationFileNameTooLong, "the name of a configuration is too long for a file name")
    /// Never thrown: each description of a part of the history is valid.
    public static let invalidTransactionFetchRequest = Self(
        .invalidTransactionFetchRequest, "the history cannot be fetched with this description")
    /// Never thrown: a container throws the store's error for a file of other models.
    public static let unknownDataStoreSchema = Self(
        .unknownDataStoreSchema, "the file has a schema that neither the models nor the migration plan contain")

    /// Returns an error of the same kind with another message.
    func saying(_ message: String) -> Self { Self(code, message) }
}

extension SwiftDataError: LocalizedError, CustomStringConvertible {
    /// The message.
    public var description: String { message }
    /// The message.
    public var errorDescription: String? { message }
}
