import Hummingbird
import Strata

/// Answers every error as JSON with a status: `{"error": {"message": "…"}}`.
struct ErrorResponses<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do { return try await next(request, context) } catch {
            let answer = HTTPError(answering: error)
            if answer.status == .internalServerError { context.logger.error("\(request.method) \(request.uri): \(error)") }
            throw answer
        }
    }
}

extension HTTPError {
    /// Creates the answer to a request that failed. Only errors that a client can do something about show their text.
    fileprivate init(answering error: any Error) {
        switch error {
        case let error as HTTPError:
            self = error
            body = body ?? status.reasonPhrase
        case let error as any HTTPResponseError:
            self.init(error.status, message: error.status.reasonPhrase)
        case let error as SaveError:
            self.init(answering: error)
        case let error as StoreError where error.code == .full:
            self.init(.init(code: 507, reasonPhrase: "Insufficient Storage"), message: "the store is full")
        case let error as StoreError where error.code == .closed || error.code == .storeBusy:
            self.init(.serviceUnavailable, headers: [.retryAfter: "1"], message: "the store cannot be used now. Try again")
        default:
            self.init(.internalServerError, message: "the server failed; its log has the reason")
        }
    }

    private init(answering error: SaveError) {
        switch error {
        case .conflicts:
            self.init(
                .serviceUnavailable, headers: [.retryAfter: "1"], message: "too many requests change this at once. Try again")
        case .uniqueConstraint(let entity, let properties, _, _):
            self.init(
                .conflict,
                message: "there is \(entity == "Item" ? "an item" : "a shelf") with this \(properties.joined()) already")
        case .deleteDenied(_, let relationship, let blocking):
            self.init(
                .conflict, message: "cannot delete it: it still has \(blocking.count) \(relationship). Delete or move them first")
        case .danglingReference(_, let property, _):
            self.init(.conflict, message: "the \(property) was deleted at the same time")
        case .validation(let failures):
            self.init(.unprocessableContent, message: failures.map { "\($0.1)" }.joined(separator: "; "))
        case .willSaveDoesNotSettle, .parentGone, .deferredSavesFailed:
            self.init(.internalServerError, message: "the server failed; its log has the reason")
        }
    }
}
