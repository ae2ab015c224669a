/* The C interface of Cairn for training, as in `cairn train`: a model's weights, a loss and an optimiser. The
 * conventions are those of cairn.h. A trainer must not be used by two threads at a time.
 */
#ifndef CAIRN_TRAINING_H_
#define CAIRN_TRAINING_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CairnTrainer CairnTrainer;

/* The weights are the module's float constants. `options`: NULL, or JSON as in `cairn train`: {"loss": "cross_entropy",
 * "loss_numbers": {"smoothing": 0.1}, "class_axis": 1, "classes": true, "optimizer": "sgd", "numbers": {"momentum": 0.9},
 * "weight_decay": 0, "clip_norm": 0, "norm_momentum": 0.9, "train": ["head.*"], "freeze": [], "labels": "labels",
 * "seed": 0}. */
CAIRN_API CairnStatus cairn_trainer_create(const CairnModule* module, const char* options,
                                           const CairnModelOptions* run_options, CairnTrainer** trainer);
CAIRN_API void cairn_trainer_free(CairnTrainer* trainer);
/* The tensors of a batch: the model's inputs, then the labels. */
CAIRN_API size_t cairn_trainer_input_count(const CairnTrainer* trainer);
CAIRN_API CairnStatus cairn_trainer_input(const CairnTrainer* trainer, size_t index, CairnPort* port);
/* trainer_step makes one training step on a batch, the next function only measures. `loss` and `accuracy` may be NULL;
 * without classes the accuracy is NaN. */
CAIRN_API CairnStatus cairn_trainer_step(CairnTrainer* trainer, const CairnTensor* batch, size_t count,
                                         double learning_rate, double* loss, double* accuracy);
CAIRN_API CairnStatus cairn_trainer_evaluate(const CairnTrainer* trainer, const CairnTensor* batch, size_t count,
                                             double* loss, double* accuracy);
/* Called at the end of each epoch with JSON: epoch, loss, accuracy, validation_loss, validation_accuracy,
 * learning_rate, steps, seconds, step_seconds. Returning 0 ends the training. */
typedef int32_t (*CairnEpochEnds)(void* user, const char* epoch);
/* Trains for several epochs. `arrays`: one for each tensor of a batch, with the examples along the first dim.
 * `validation`: NULL, or as many arrays to measure on. `options`: NULL, or JSON: {"epochs": 1, "batch": 32,
 * "learning_rate": 0.1, "schedule": "cosine", "warmup": 0, "least_rate": 0, "gamma": 0.1, "step_epochs": 30,
 * "shuffle": true, "keep_rest": true, "seed": 0}. */
CAIRN_API CairnStatus cairn_trainer_fit(CairnTrainer* trainer, const CairnTensor* arrays, size_t count,
                                        const CairnTensor* validation, const char* options, CairnEpochEnds epoch_ends,
                                        void* user);
/* The state of training: the number of steps made, the weights, the statistics of batch norms and the optimiser's
 * slots, for saving and restoring all of them together. */
CAIRN_API size_t cairn_trainer_state_count(const CairnTrainer* trainer);
CAIRN_API CairnStatus cairn_trainer_state(const CairnTrainer* trainer, size_t index, CairnPort* port);
CAIRN_API CairnStatus cairn_trainer_states(CairnTrainer* trainer, CairnAllocate allocate, void* user);
CAIRN_API CairnStatus cairn_trainer_restore(CairnTrainer* trainer, const CairnTensor* states, size_t count);
/* The module with the current weights. */
CAIRN_API CairnStatus cairn_trainer_module(const CairnTrainer* trainer, CairnModule** module);
/* Writes that module as an .om file or, if an ONNX file was opened, as that file with the new weights; the path's
 * extension decides. */
CAIRN_API CairnStatus cairn_trainer_save(const CairnTrainer* trainer, const char* path);

#ifdef __cplusplus
}
#endif

#endif
